/* spin.c - see spin.h. */
#include "base/spin.h"

uint64_t hf_spin_begin(hf_spin *spin, uint64_t now_ns)
{
    if (spin->read_ns == 0 || now_ns > spin->read_ns + HF_SPIN_RECENT_NS)
        return 0;
    if (spin->skip > 0) {
        spin->skip--;
        return 0;
    }
    return now_ns + HF_SPIN_NS;
}

void hf_spin_end(hf_spin *spin, bool in_vain)
{
    if (!in_vain)
        spin->gap = 0;
    else
        spin->gap = spin->gap < HF_SPIN_GAP_MAX / 2 ? 2 * spin->gap + (spin->gap == 0)
                                                    : HF_SPIN_GAP_MAX;
    spin->skip = spin->gap;
}

void hf_spin_read(hf_spin *spin, uint64_t now_ns)
{
    spin->read_ns = now_ns;
}
