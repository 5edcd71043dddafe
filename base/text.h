/* text.h - durations, sizes and times as people write them; and control characters in
 * texts.
 */
#ifndef HF_BASE_TEXT_H
#define HF_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A whole number and a unit: ms s m h d ("250ms", "10s", "5m", "1h", "180d"), or several,
 * from the largest unit to the smallest, each at most once ("1h30m", "1d12h"): in another
 * order one of them is probably a slip. "0" alone is allowed, any other number without
 * unit is not. False: it is none, or longer than HF_DELAY_MAX_MS. */
bool hf_parse_duration_ms(const char *text, int64_t *out);

/* A whole number with B, KiB, MiB, GiB or without unit (bytes). */
bool hf_parse_size(const char *text, int64_t *out);

/* A whole number, all of the text, within min..max. */
bool hf_parse_int(const char *text, int64_t min, int64_t max, int64_t *out);

/* RFC 3339 with a zone ("2026-11-21T10:00:00Z", "...00.250+01:00") or "@SECONDS[.fff]",
 * as Unix ms. A time without a zone is refused, because it means another one on each
 * machine, and so is one after HF_TIME_MAX_MS. */
bool hf_parse_time_ms(const char *text, int64_t *out);

/* For the message about a time that was refused: what to add, or "". */
const char *hf_time_needs(const char *text);

enum { HF_DURATION_SIZE = 24, HF_TIME_SIZE = 32 };
void hf_format_duration(int64_t ms,
                        char out[HF_DURATION_SIZE]); /* "1500ms", "10s", "2h" */
void hf_format_time(int64_t unix_ms,
                    char out[HF_TIME_SIZE]); /* RFC 3339 in UTC with ms */

/* "3m ago", "in 10s", "now"; "-" for 0. */
enum { HF_WHEN_SIZE = 64, HF_MOMENT_SIZE = 112 };
void hf_format_when(int64_t unix_ms, int64_t now_ms, char out[HF_WHEN_SIZE]);
/* "2030-01-31T08:00:00.000Z (in 10s)" */
void hf_format_moment(int64_t unix_ms, int64_t now_ms, char out[HF_MOMENT_SIZE]);

/* FNV-1a of a text, going on from HF_HASH_START or an earlier result. Not for secrets. */
#define HF_HASH_START UINT64_C(14695981039346656037)
uint64_t hf_hash_text(uint64_t hash, const char *text);

/* The bytes of the UTF-8 character at p, where `left` bytes are there; 0: there is
 * none (a stray or missing continuation, a longer form than needed, half a surrogate
 * pair, past the last character). */
size_t hf_utf8_len(const char *p, size_t left);
/* The bytes at the end of a text that may be the beginning of a character: 0 to 3. */
size_t hf_utf8_unfinished(const char *text, size_t len);

/* Where the end of a text begins that has room in this many bytes, without a part of a
 * character: of an error the end says most. */
size_t hf_text_end(const char *text, size_t len, size_t room);

/* The part of an error that fits into a row: its beginning. All Python traces begin
 * alike, so of a trace it is the last line. Borrowed from the error. */
const char *hf_text_gist(const char *error);

/* The length in bytes of the control character at `at`, which a terminal could take for a
 * command, or that turns the order of the text around it: below U+0020, DEL, U+0080 to
 * U+009F, and format characters as U+202E. 0: there is none. */
size_t hf_control_len(const char *at);
/* The character of that length, which hf_utf8_len() has found. */
uint32_t hf_utf8_char(const char *text, size_t len);
void hf_text_plain(char *text); /* spaces instead of them */

#endif
