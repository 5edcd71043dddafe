package holdfast

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast-queue/holdfast/internal/testredis"
)

// nodes returns a cluster of two.
func nodes(t *testing.T) []*testredis.Server {
	t.Helper()
	ctx := context.Background()
	both := []*testredis.Server{testredis.StartNode(t), testredis.StartNode(t)}
	for i, node := range both {
		if err := node.Client.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", i*8192, i*8192+8191).Err(); err != nil {
			t.Skipf("this server has no CLUSTER ADDSLOTSRANGE: %v", err)
		}
	}
	host, port, _ := strings.Cut(both[1].Addr, ":")
	both[0].Client.Do(ctx, "CLUSTER", "MEET", host, port)
	testredis.Until(t, "the cluster is complete", func() bool {
		for _, node := range both {
			info := node.Client.ClusterInfo(ctx).Val()
			if !strings.Contains(info, "cluster_state:ok") || len(node.Client.ClusterSlots(ctx).Val()) != 2 {
				return false
			}
		}
		return true
	})
	return both
}

// queueOf returns a queue of a node, and its slot.
func queueOf(node, after int) (queue string, slot int) {
	for k := after; ; k++ {
		queue = fmt.Sprint("q", k)
		slot = int(crc16(queue)) % 16384
		if (slot > 8191) == (node == 1) {
			return queue, slot
		}
	}
}

func TestACluster(t *testing.T) {
	ctx, both := context.Background(), nodes(t)
	c := New(Options{URL: "redis+cluster://" + both[0].Addr + "," + both[1].Addr, Deadline: time.Minute})
	defer c.Close()
	id := func(node int) string { return both[node].Client.Do(ctx, "CLUSTER", "MYID").Val().(string) }
	give := func(slot, to int) {
		both[to].Client.Do(ctx, "CLUSTER", "BUMPEPOCH") // else the other one may take it back
		for i := range both {
			both[1-i].Client.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", id(to))
		}
	}
	t.Run("each queue has its node", func(t *testing.T) {
		for place, node := range both {
			queue, _ := queueOf(place, 0)
			ref := must1[*JobRef](t)(c.Send(ctx, "t", nil, Queue(queue)))
			if waiting(t, node.Client, queue) != 1 || must1[State](t)(ref.State(ctx)) != StateWaiting ||
				!must1[bool](t)(ref.Cancel(ctx)) {
				t.Errorf("expected the job at node %d", place)
			}
		}
	})
	t.Run("MOVED is followed", func(t *testing.T) {
		queue, slot := queueOf(0, 100)
		give(slot, 1)
		must1[*JobRef](t)(c.Send(ctx, "t", nil, Queue(queue)))
		if waiting(t, both[1].Client, queue) != 1 {
			t.Error("expected the job at the other node")
		}
	})
	t.Run("ASK is waited for", func(t *testing.T) {
		queue, slot := queueOf(0, 200)
		both[1].Client.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(0))
		both[0].Client.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(1))
		time.AfterFunc(700*time.Millisecond, func() { give(slot, 1) })
		started := time.Now()
		must1[*JobRef](t)(c.Send(ctx, "t", nil, Queue(queue)))
		if time.Since(started) < 600*time.Millisecond || waiting(t, both[1].Client, queue) != 1 {
			t.Error("expected to wait until the slot has moved")
		}
		if stats := both[1].Client.Info(ctx, "commandstats").Val(); strings.Contains(stats, "cmdstat_asking") {
			t.Error("expected no ASKING")
		}
	})
}
