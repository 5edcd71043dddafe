/* headers.c - see headers.h. */
#include "queue/headers.h"

#include "base/json_text.h"
#include "holdfast/job.h"

bool hf_headers_ok(const char *text, size_t len)
{
    char said[HF_HEADERS_MAX + 1];
    size_t n;
    hf_json_fault fault;
    hf_json_scan scan;
    hf_json_member member;
    if (len > HF_HEADERS_MAX || !hf_json_check(text, len, &fault))
        return false;
    hf_json_scan_start(&scan, text, len);
    if (scan.at == text || scan.at[-1] != '{')
        return false;
    while (hf_json_scan_next(&scan, &member)) {
        if (*member.value != '"' ||
            !hf_json_decode(member.key, member.key_len, said, &n) ||
            !hf_json_decode(member.value, member.value_len, said, &n))
            return false;
    }
    return true;
}
