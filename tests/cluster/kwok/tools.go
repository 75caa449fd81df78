//go:build tools

// Package kwok pins kwok, which plays the kubelets
// that the cluster tests run. It is never built itself: `tests/cluster/build` builds what it imports.
package kwok

import (
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
