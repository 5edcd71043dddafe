/* pages.c - see pages.h. */
#include "top/pages.h"

const hf_page_table *hf_top_page_of(hf_top_page page)
{
    static const hf_page_table *const pages[HF_PAGES] = {
        &hf_page_overview, &hf_page_running, &hf_page_dead,
        &hf_page_workers,  &hf_page_locks,   &hf_page_types};
    return pages[page];
}
