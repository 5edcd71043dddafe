/* mask.h - hides the login of what may be a URL in a text that is about to be printed.
 *
 * The text is often one that could not be used as a URL: cut, with a wrong scheme, with a
 * password that is not percent-encoded. So no parser decides, but where an '@' stands. If
 * in doubt too much is hidden. */
#ifndef HF_BASE_MASK_H
#define HF_BASE_MASK_H

/* In each word of a message that may be a URL, "***" replaces all before its host. Works
 * in place, because no text gets longer. */
void hf_mask(char *text);

/* A user's value, for a message about it: masked as one word, then cut. */
enum { HF_FOUND_SIZE = 84 };
const char *hf_found(char out[HF_FOUND_SIZE], const char *text);
#define HF_FOUND(text) hf_found((char[HF_FOUND_SIZE]){0}, (text))

#endif
