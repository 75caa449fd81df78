//go:build tools

// Package lws pins the controllers of LeaderWorkerSet and DisaggregatedSet
// that the cluster tests run. It is never built itself: `tests/cluster/build` builds what it imports.
package lws

import (
	_ "sigs.k8s.io/lws/cmd"
)
