/* xml.h - whether a text is well-formed XML, as far as our own pictures use it: elements,
 * attributes, text and the five entities of XML; no comments, no DOCTYPE. */
#ifndef HF_TESTS_SUPPORT_XML_H
#define HF_TESTS_SUPPORT_XML_H

#include <stddef.h>

/* NULL: it is. Else what is wrong; `where` gets how many bytes before it are good. */
const char *hf_xml_problem(const char *text, size_t *where);

/* How many elements have this class. */
size_t hf_xml_count(const char *text, const char *class);

#endif
