/* struct.h - how the structs of these headers may grow.
 *
 * Every struct that a program makes itself begins with its size at the time when the
 * program was compiled. A later library with more fields sees from the size which of them
 * the program knows; the others get their defaults. So a program works with a newer
 * library without being compiled again. It works with an older one if it sets no field
 * that the older one does not know.
 *
 *   hf_job job = {HF_JOB_INIT, .type = "email.send"};      C
 *   hf_job job = {HF_JOB_INIT}; job.type = "email.send";   C++
 *
 * Each such struct has a macro HF_..._INIT, the first member of an initialiser. Members
 * that are not named are zero, and zero is the default unless a constant says otherwise.
 * In an array every element has the size of the first. A struct that a call fills begins
 * with its size as well: the call writes the members that fit and does not change the
 * size.
 *
 * A call returns HF_INVALID when a struct has no size, or when it sets a field that this
 * library does not know; `detail` then names the struct and its macro. */
#ifndef HOLDFAST_STRUCT_H
#define HOLDFAST_STRUCT_H

#include <stddef.h>

#ifdef __cplusplus
/* A whole struct with its size and zeros, because C++ has designated initialisers only
 * since C++20. */
extern "C++" {
template <typename T> inline T hf_struct_init()
{
    T t = T();
    t.size = sizeof(T);
    return t;
}
}
#define HF_STRUCT_INIT(type) hf_struct_init<type>()
#else
#define HF_STRUCT_INIT(type) .size = sizeof(type)
#endif

#endif
