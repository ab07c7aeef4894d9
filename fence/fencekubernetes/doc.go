// Package fencekubernetes guards objects in Kubernetes. The API server does a write only if the
// object still has the mark of a term that may write, so nothing can come between check and write.
//
//	cm, err := fencekubernetes.Update(ctx, clientset.CoreV1().ConfigMaps("shop"), l.Sequencer(), "billing",
//		func(cm *corev1.ConfigMap) error { cm.Data["balance"] = "70"; return nil })
//
// The mark is the highest token that was admitted, with its holder. It is the annotation
// [Annotation] of the guarded object. A write of an earlier term, or of another holder of the same
// term, is not done. The error is a *[fence.StaleError].
//
//   - [Update] reads the object and checks its mark. It writes the mark and the change on condition
//     of the resource version that it read.
//   - [Patch] is one request, also for subresources such as status: the server tests the mark in
//     the JSON patch itself.
//   - [Stamp] is for clients of other kinds, such as controller-runtime's.
//
// An object that is deleted forgets its mark, and a delayed Create makes the object again. So keep
// a guarded object, and flag it as deleted by a field. A write without this package is not guarded,
// and must keep the annotation.
package fencekubernetes
