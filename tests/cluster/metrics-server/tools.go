//go:build tools

// Package metricsserver pins metrics-server
// that the cluster tests run. It is never built itself: `tests/cluster/build` builds what it imports.
package metricsserver

import (
	_ "sigs.k8s.io/metrics-server/cmd/metrics-server"
)
