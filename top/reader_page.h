/* reader_page.h - what each page shows beside the whole. */
#ifndef HF_TOP_READER_PAGE_H
#define HF_TOP_READER_PAGE_H

#include "top/reader.h"

/* The details or the log of the subject, written into the model. */
void hf_reader_subject(hf_top_reader *reader, const hf_subject *subject);

#endif
