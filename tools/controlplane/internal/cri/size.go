//go:build linux && !kubernetes_1_31

package cri

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

func setImageSize(described *runtimeapi.Image, size uint64) { described.Size = size }
