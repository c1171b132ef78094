package upstream

import (
	"context"
	"net/netip"
	"slices"
	"sync"
)

type (
	clientKey struct{}
	askerKey  struct{}
)

// ForClient says for which client something is asked, by its address. Clients wait
// for an origin in turn, however much each of them asks for. What is asked without
// it is the server's own, and counts as one client that may have every slot.
func ForClient(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, clientKey{}, network(address))
}

// ClientOf returns the client that something is asked for, as ForClient tells it from
// others; empty without it.
func ClientOf(ctx context.Context) string {
	client, _ := ctx.Value(clientKey{}).(string)
	return client
}

// network is what one client has: an address, or the /64 that is handed out for
// one with IPv6.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.String()
}

// mostClients of an asker are told apart: further ones gain nothing by it.
const mostClients = 64

// An asker is the clients that something is done for, once for all of them. It
// waits in the queues of all, so that whoever joins is not behind what the first
// of them asked for before.
type Clients struct {
	mutex   sync.Mutex
	clients []string
	further []*Clients // of what this one waits for

	turn *turn // that it waits for; nil: none
	at   *slots
}

// NewClients is for whoever ctx is of.
func NewClients(ctx context.Context) *Clients {
	a := new(Clients)
	a.Join(ctx)
	return a
}

// join adds whoever ctx is of.
func (a *Clients) Join(ctx context.Context) {
	if by, ok := ctx.Value(askerKey{}).(*Clients); ok {
		by.lead(a)
		return
	}
	a.add(ClientOf(ctx))
}

// lead adds the clients of a, and those that it will have, to another asker.
func (a *Clients) lead(to *Clients) {
	a.mutex.Lock()
	if !slices.Contains(a.further, to) {
		a.further = append(a.further, to)
	}
	clients := slices.Clone(a.clients)
	a.mutex.Unlock()
	for _, client := range clients {
		to.add(client)
	}
}

func (a *Clients) add(client string) {
	a.mutex.Lock()
	if slices.Contains(a.clients, client) || len(a.clients) >= mostClients {
		a.mutex.Unlock()
		return
	}
	a.clients = append(a.clients, client)
	if a.turn != nil {
		a.at.enqueue(a.turn, client)
	}
	further := slices.Clone(a.further)
	a.mutex.Unlock()
	for _, to := range further {
		to.add(client)
	}
}

// in is a context for what is done for the asker.
func (a *Clients) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, askerKey{}, a)
}

// wait queues for a turn. Not ok: too many wait already.
func (a *Clients) wait(s *slots, t *turn) (ok bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.turn, a.at = t, s
	return s.enqueue(t, a.clients...)
}

// done ends the waiting.
func (a *Clients) done() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.turn, a.at = nil, nil
}
