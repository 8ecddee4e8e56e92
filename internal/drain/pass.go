package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/drain"
)

// ForSilentKubelet makes a drain not wait for a kubelet that does not answer: nobody there would report that a pod has
// terminated. Pods get a second of grace, and those that have had it count as gone, as upstream does it.
func ForSilentKubelet(helper *drain.Helper) {
	helper.GracePeriodSeconds = 1
	helper.SkipWaitForDeleteTimeoutSeconds = 1
}

// Pass asks once for the eviction of every pod of a Node whose turn it is, and tells what is left. helper's filters
// decide which pods the drain is for; with a dry run nothing is evicted.
func Pass(ctx context.Context, helper *drain.Helper, node string, rules Rules) (Progress, error) {
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return Progress{}, fmt.Errorf("list the pods of Node %q: %w", node, errors.Join(errs...))
	}
	namespaces, err := namespaceLabels(ctx, helper.Client, rules)
	if err != nil {
		return Progress{}, err
	}
	plan := NewPlan(list.Pods(), rules, namespaces)

	progress := Progress{Terminating: namesOf(plan.Terminating), Later: namesOf(plan.Later)}
	for _, held := range plan.Completing {
		progress.Completing = append(progress.Completing, Cause{nameOf(&held.Pod), held.By})
	}
	budgets := budgetReader{client: helper.Client}
	for _, pod := range plan.Evict {
		err := evict(ctx, helper, &pod)
		switch {
		case err == nil:
			progress.Evicted = append(progress.Evicted, nameOf(&pod))
			progress.Terminating = append(progress.Terminating, nameOf(&pod))
		case ctx.Err() != nil:
			return progress, ctx.Err()
		case apierrors.IsNotFound(err):
		default:
			progress.Refused = append(progress.Refused, Cause{nameOf(&pod), refusal(err, func() []string { return budgets.of(ctx, &pod) })})
		}
	}
	return progress, nil
}

// evict does not repeat a refused eviction, which client-go would do for a refusal that asks to come again later: the
// next pass does, and nobody waits meanwhile.
func evict(ctx context.Context, helper *drain.Helper, pod *corev1.Pod) error {
	options := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	if grace := int64(helper.GracePeriodSeconds); grace >= 0 {
		options.GracePeriodSeconds = &grace
	}
	switch helper.DryRunStrategy {
	case util.DryRunClient:
		return nil
	case util.DryRunServer:
		options.DryRun = []string{metav1.DryRunAll}
	}
	err := helper.Client.CoreV1().RESTClient().Post().MaxRetries(0).
		Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").
		Body(&policyv1.Eviction{
			TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: options,
		}).Do(ctx).Error()
	// Another pod of the name, which has come since the list.
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// refusal says why an eviction was refused. The API server names the budget that forbids it; of other refusals budgets
// may be the cause, such as two that cover one pod.
func refusal(err error, budgets func() []string) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			switch cause.Type {
			case policyv1.DisruptionBudgetCause:
				return cause.Message
			case corev1.NamespaceTerminatingCause:
				return "its namespace is being deleted, and deletes it"
			}
		}
	}
	if names := budgets(); len(names) > 0 {
		return fmt.Sprintf("%v (disruption budgets that cover it: %s)", err, strings.Join(names, ", "))
	}
	return err.Error()
}

// budgetReader reads the disruption budgets of a namespace once a pass.
type budgetReader struct {
	client kubernetes.Interface
	read   map[string][]policyv1.PodDisruptionBudget
}

// of returns no name where they cannot be read: the refusal is told without them.
func (r *budgetReader) of(ctx context.Context, pod *corev1.Pod) []string {
	if _, known := r.read[pod.Namespace]; !known {
		list, err := r.client.PolicyV1().PodDisruptionBudgets(pod.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil
		}
		if r.read == nil {
			r.read = map[string][]policyv1.PodDisruptionBudget{}
		}
		r.read[pod.Namespace] = list.Items
	}
	return budgetsOf(pod, r.read[pod.Namespace])
}

// namespaceLabels reads nothing unless a rule asks for it.
func namespaceLabels(ctx context.Context, c kubernetes.Interface, rules Rules) (map[string]map[string]string, error) {
	if !rules.NeedNamespaces() {
		return nil, nil
	}
	list, err := c.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the namespaces that MachineDrainRules select by label: %w", err)
	}
	out := make(map[string]map[string]string, len(list.Items))
	for _, namespace := range list.Items {
		out[namespace.Name] = namespace.Labels
	}
	return out, nil
}

func nameOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func namesOf(pods []corev1.Pod) []string {
	var out []string
	for _, pod := range pods {
		out = append(out, nameOf(&pod))
	}
	return out
}
