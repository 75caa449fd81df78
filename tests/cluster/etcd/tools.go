//go:build tools

// Package etcd pins the etcd server
// that the cluster tests run. It is never built itself: `tests/cluster/build` builds what it imports.
package etcd

import (
	_ "go.etcd.io/etcd/server/v3"
)
