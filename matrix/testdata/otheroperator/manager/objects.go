package main

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// objectsOf are the objects of a kiosk.
func objectsOf(kiosk *unstructured.Unstructured) []*unstructured.Unstructured {
	name := kiosk.GetName()
	spec, _, _ := unstructured.NestedMap(kiosk.Object, "spec")
	selector := map[string]any{"app.kubernetes.io/name": "kiosk", "app.kubernetes.io/instance": name}
	kind := "ClusterIP"
	if spec["exposed"] == true {
		kind = "NodePort"
	}
	port := int64(8080)
	objects := []*unstructured.Unstructured{
		child(kiosk, "v1", "ConfigMap", name, map[string]any{"data": map[string]any{"greeting": spec["greeting"]}}),
		child(kiosk, "v1", "Service", name, map[string]any{"spec": map[string]any{
			"type": kind, "selector": selector, "ports": []any{map[string]any{"name": "http", "port": port, "targetPort": port}},
		}}),
		child(kiosk, "apps/v1", "Deployment", name, map[string]any{"spec": map[string]any{
			"replicas": spec["counters"],
			"selector": map[string]any{"matchLabels": selector},
			"strategy": map[string]any{"rollingUpdate": map[string]any{"maxUnavailable": int64(0), "maxSurge": int64(1)}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": selector, "annotations": map[string]any{"fair.example.com/greeting": spec["greeting"]}},
				"spec": map[string]any{"terminationGracePeriodSeconds": int64(5), "containers": []any{map[string]any{
					"name": "kiosk", "image": spec["image"],
					"ports":          []any{map[string]any{"name": "http", "containerPort": port}},
					"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/open", "port": port}, "periodSeconds": int64(1)},
				}}},
			},
		}}),
	}
	if notice, _ := spec["notice"].(map[string]any); notice["enabled"] == true {
		objects = append(objects, child(kiosk, "v1", "ConfigMap", name+"-notice", map[string]any{"data": map[string]any{"text": notice["text"]}}))
	}
	return objects
}

// child is an object that belongs to the kiosk.
func child(kiosk *unstructured.Unstructured, apiVersion, kind, name string, fields map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: fields}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetNamespace(kiosk.GetNamespace())
	object.SetName(name)
	object.SetLabels(map[string]string{
		"app.kubernetes.io/name": "kiosk", "app.kubernetes.io/instance": kiosk.GetName(), "app.kubernetes.io/managed-by": "kiosk-operator",
	})
	_ = unstructured.SetNestedSlice(object.Object, []any{map[string]any{
		"apiVersion": kiosk.GetAPIVersion(), "kind": kiosk.GetKind(), "name": kiosk.GetName(), "uid": string(kiosk.GetUID()), "controller": true,
	}}, "metadata", "ownerReferences")
	return object
}
