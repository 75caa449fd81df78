//go:build tools

// Package inferencesim pins the vLLM simulator of llm-d
// that the cluster tests run. It is never built itself: `tests/cluster/build` builds what it imports.
package inferencesim

import (
	_ "github.com/llm-d/llm-d-inference-sim/cmd/llm-d-inference-sim"
)
