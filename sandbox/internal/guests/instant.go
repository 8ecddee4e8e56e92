package guests

import "context"

// join registers the machine as a Node, which is all there is to an instant
// guest. Meanwhile the power may go off.
func (m *machine) join(ctx context.Context) {
	m.phase("booting", "")
	m.report(true)
	registered, info, address := make(chan error, 1), m.info, m.address
	m.registered = registered
	// Until it is known, the Node may be there or not.
	m.isNode = true
	go func() { registered <- m.manager.Nodes.Up(ctx, info, address) }()
}

// joined takes in how that went.
func (m *machine) joined(err error) {
	if err != nil {
		m.say("the machine cannot join: %v", err)
		m.phase(failed, err.Error())
		return
	}
	m.phase("running", "instant guest")
}

// leave has the Node of an instant guest stop. A registration under way ends
// first, or it could bring the Node back.
func (m *machine) leave(ctx context.Context) {
	if m.registered != nil {
		<-m.registered
		m.registered = nil
	}
	if !m.isNode {
		return
	}
	m.isNode = false
	if err := m.manager.Nodes.Down(ctx, m.info); err != nil && ctx.Err() == nil {
		m.say("the machine's Node does not know that it stopped: %v", err)
	}
}
