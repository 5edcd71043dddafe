/* lease_heap.c - see lease_heap.h. Four children each: half as many steps down as with
 * two, and each step that is taken writes to the lease that it moves. */
#include "lock/watchdog/lease_heap.h"

#include <stdint.h>
#include <stdlib.h>

enum { FIRST_CAP = 64, CHILDREN = 4 };

bool hf_lease_heap_reserve(hf_lease_heap *heap, size_t more)
{
    if (heap->n + more <= heap->cap)
        return true;
    size_t cap = heap->cap == 0 ? FIRST_CAP : heap->cap;
    while (cap < heap->n + more)
        cap *= 2;
    hf_lease_slot *slots = realloc(heap->slots, cap * sizeof *slots);
    if (slots == NULL)
        return false;
    heap->slots = slots;
    heap->cap = cap;
    return true;
}

static void place(hf_lease_heap *heap, size_t at, hf_lease_slot slot)
{
    heap->slots[at] = slot;
    slot.lease->at = at;
}

static void rise(hf_lease_heap *heap, size_t at, hf_lease_slot slot)
{
    while (at > 0 && slot.due_ns < heap->slots[(at - 1) / CHILDREN].due_ns) {
        place(heap, at, heap->slots[(at - 1) / CHILDREN]);
        at = (at - 1) / CHILDREN;
    }
    place(heap, at, slot);
}

static void sink(hf_lease_heap *heap, size_t at, hf_lease_slot slot)
{
    for (;;) {
        size_t child = CHILDREN * at + 1, end = child + CHILDREN;
        if (child >= heap->n)
            break;
        for (size_t other = child + 1; other < end && other < heap->n; other++)
            if (heap->slots[other].due_ns < heap->slots[child].due_ns)
                child = other;
        if (slot.due_ns <= heap->slots[child].due_ns)
            break;
        place(heap, at, heap->slots[child]);
        at = child;
    }
    place(heap, at, slot);
}

static void settle(hf_lease_heap *heap, size_t at, hf_lease_slot slot)
{
    if (at > 0 && slot.due_ns < heap->slots[(at - 1) / CHILDREN].due_ns)
        rise(heap, at, slot);
    else
        sink(heap, at, slot);
}

void hf_lease_heap_put(hf_lease_heap *heap, hf_lease *lease, uint64_t due_ns)
{
    size_t at = lease->at == HF_NOT_IN_HEAP ? heap->n++ : lease->at;
    settle(heap, at, (hf_lease_slot){due_ns, lease});
}

void hf_lease_heap_take(hf_lease_heap *heap, hf_lease *lease)
{
    size_t at = lease->at;
    if (at == HF_NOT_IN_HEAP)
        return;
    lease->at = HF_NOT_IN_HEAP;
    hf_lease_slot last = heap->slots[--heap->n];
    if (last.lease != lease)
        settle(heap, at, last);
}

void hf_lease_heap_order(hf_lease_heap *heap)
{
    size_t parents = heap->n < 2 ? 0 : (heap->n - 2) / CHILDREN + 1;
    for (size_t at = parents; at-- > 0;)
        sink(heap, at, heap->slots[at]);
}
