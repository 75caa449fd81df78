//go:build tools

// Package kubernetes pins the Kubernetes servers that the cluster tests run, and the kubectl of
// the same version. It is never built itself: `tests/cluster/build` builds what it imports.
package kubernetes

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
