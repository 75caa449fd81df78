//go:build tools

// Package keda pins KEDA's operator and metrics adapter
// that the cluster tests run. It is never built itself: `tests/cluster/build` builds what it imports.
package keda

import (
	_ "github.com/kedacore/keda/v2/cmd/operator"
	_ "github.com/kedacore/keda/v2/cmd/adapter"
)
