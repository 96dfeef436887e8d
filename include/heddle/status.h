/* heddle/status.h: names and texts of status codes, details of failures, and the version of the library.
 * The codes and heddle_error are those of the plugin ABI (heddle/plugin.h), so an error travels unchanged from a driver
 * to the user. */
#ifndef HEDDLE_STATUS_H
#define HEDDLE_STATUS_H

#include "heddle/plugin.h"

#if defined(__GNUC__)
#define HEDDLE_API __attribute__((visibility("default")))
#else
#define HEDDLE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The name ("HEDDLE_EBUSY") and the meaning ("still in use") of a status; "unknown status" for any other number. Static
 * strings. Any thread. */
HEDDLE_API const char *heddle_status_name(heddle_status status);
HEDDLE_API const char *heddle_status_text(heddle_status status);

/* The device, node, operand and rank that a failed run, plan or load concerns. Set struct_size. */
typedef struct heddle_failure {
  uint32_t struct_size;
  int32_t node;        /* the node's index in its graph; -1: not known */
  int32_t operand;     /* the input of the node; -1: not known */
  char device[64];     /* "cuda:0"; "": no device is concerned */
  char node_name[128]; /* truncated if longer; "": no node is concerned */
  int32_t rank;        /* whose failure it is, in a context of ranks (heddle/ranks.h); -1: not known */
} heddle_failure;

/* Returns the device, node, operand and rank that an error of this library concerns, so a program need not parse its
 * text. err is the error of the failed call, a copy of it, or NULL. Returns HEDDLE_ENOTFOUND where the error names none
 * of them; out is filled in this case too. HEDDLE_EINVAL where out is NULL or its struct_size is too small. Pure; any
 * thread. */
HEDDLE_API heddle_status heddle_error_failure(const heddle_error *err, heddle_failure *out);

/* Identifies an error. A heddle_callback that fails calls heddle_error_mark after it wrote the text. It returns a number
 * other than 0 that no other error of this process has. A call that fails because of the callback gives an error with the
 * same number, also through compiled code and from another thread; heddle_error_origin returns it, so that a language
 * binding finds the exception that its callback left. Copies of the struct have the same number, an error with another
 * text has none. mark cuts the text to 799 bytes. Both return 0 where err is NULL, and origin where there is no number.
 * Any thread. */
HEDDLE_API uint64_t heddle_error_mark(heddle_error *err);
HEDDLE_API uint64_t heddle_error_origin(const heddle_error *err);

/* The library's version, "0.1.0". Static string. Any thread. */
HEDDLE_API const char *heddle_version(void);

#ifdef __cplusplus
}
#endif

#endif
