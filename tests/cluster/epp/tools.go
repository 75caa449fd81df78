//go:build tools

// Package epp pins the endpoint picker of the Gateway API inference extension
// that the cluster tests run. It is never built itself: `tests/cluster/build` builds what it imports.
package epp

import (
	_ "sigs.k8s.io/gateway-api-inference-extension/cmd/epp"
)
