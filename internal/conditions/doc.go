// Package conditions reads and writes metav1.Conditions of any object.
//
// In: an object with GetConditions and SetConditions (the Cluster API types have them; contract.Conditions gives them
// to unstructured objects) and a condition. Out: the object's list, sorted, in which a condition's
// lastTransitionTime moves only when its status does.
//
// It knows no condition type but Available and Ready, which come first in a list.
package conditions
