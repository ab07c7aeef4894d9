// Package fencekubernetes guards objects in Kubernetes: the API server does a write only if the object still bears the mark of a
// term that may write, so that nothing can come between check and write.
//
//	cm, err := fencekubernetes.Update(ctx, clientset.CoreV1().ConfigMaps("shop"), l.Sequencer(), "billing",
//		func(cm *corev1.ConfigMap) error { cm.Data["balance"] = "70"; return nil })
//
// The mark, the highest token that was admitted and whose it was, is the annotation [Annotation] of the guarded object. A write
// of an earlier term, or of another holder of the same term, is not done, and the error is a *[fence.StaleError].
//
// [Update] reads the object, checks its mark, and writes both it and the change on condition of the resource version that was read.
// [Patch] is one request, also for subresources such as status: the server tests the mark in the JSON patch itself. [Stamp] is
// for clients of other kinds, such as controller-runtime's.
//
// An object that is deleted forgets its mark, and a Create that was delayed makes it anew: what is guarded has to stay, and say
// by a field that it is gone. What writes to the object without this package is not guarded, and must keep the annotation.
package fencekubernetes
