package management

const auditPolicyFile = "audit-policy.yaml"

// auditPolicy notes who asked for what, and the answer's code. A request is
// noted once it is answered; a watch when it begins, too.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: Metadata
`
