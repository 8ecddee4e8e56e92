package kubeadm

// downgrade rewrites a v1beta4 document as v1beta3. What v1beta3 cannot say is left out, as the
// API documents for these fields ("only on Kubernetes >= 1.31").
//
// The wait for the control plane moved between the two versions from ClusterConfiguration
// (timeoutForControlPlane) and discovery (timeout) to timeouts; limits are those in force.
func downgrade(document any, limits *timeouts) (map[string]any, error) {
	out, err := fields(document)
	if err != nil {
		return nil, err
	}
	out["apiVersion"] = v1beta3
	for _, name := range []string{"timeouts", "encryptionAlgorithm", "certificateValidityPeriod", "caCertificateValidityPeriod"} {
		delete(out, name)
	}
	if registration, ok := out["nodeRegistration"].(map[string]any); ok {
		delete(registration, "imagePullSerial")
		argsToMap(registration, "kubeletExtraArgs")
	}
	for _, name := range []string{"apiServer", "controllerManager", "scheduler"} {
		downgradeComponent(out[name])
	}
	if etcd, ok := out["etcd"].(map[string]any); ok {
		downgradeComponent(etcd["local"])
	}
	if limits == nil {
		return out, nil
	}
	switch out["kind"] {
	case "ClusterConfiguration":
		if wait := limits.ControlPlaneComponentHealthCheck; wait != nil {
			apiServer, ok := out["apiServer"].(map[string]any)
			if !ok {
				apiServer = map[string]any{}
			}
			apiServer["timeoutForControlPlane"] = wait.Duration.String()
			out["apiServer"] = apiServer
		}
	case "JoinConfiguration":
		if wait := limits.TLSBootstrap; wait != nil {
			out["discovery"].(map[string]any)["timeout"] = wait.Duration.String()
		}
	}
	return out, nil
}

func downgradeComponent(value any) {
	component, ok := value.(map[string]any)
	if !ok {
		return
	}
	delete(component, "extraEnvs")
	argsToMap(component, "extraArgs")
}

// argsToMap turns a list of names and values into the map that v1beta3 wants.
func argsToMap(parent map[string]any, key string) {
	list, ok := parent[key].([]any)
	if !ok {
		return
	}
	args := map[string]any{}
	for _, item := range list {
		arg := item.(map[string]any)
		value, _ := arg["value"].(string)
		args[arg["name"].(string)] = value
	}
	parent[key] = args
}
