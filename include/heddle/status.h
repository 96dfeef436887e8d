/* heddle/status.h: status codes and their words, and the version of the library.
 * The codes and heddle_error are those of the plugin ABI, so that one error travels from a driver to the user. */
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

/* The name ("HEDDLE_EBUSY") and the meaning ("still in use") of a status; "unknown status" for a number that is none.
 * Static strings. Any thread. */
HEDDLE_API const char *heddle_status_name(heddle_status status);
HEDDLE_API const char *heddle_status_text(heddle_status status);

/* What a failure of a run, a plan or a load is about. Set struct_size. */
typedef struct heddle_failure {
  uint32_t struct_size;
  int32_t node;        /* the node's index in its graph; -1: not known */
  int32_t operand;     /* the input of the node; -1: not known */
  char device[64];     /* "cuda:0"; "": no device is concerned */
  char node_name[128]; /* cut where it is longer; "": no node is concerned */
} heddle_failure;

/* The device, node and operand that an error of this library is about; so that no program needs to read its text. err is
 * as the failed call left it, or a copy, or NULL. HEDDLE_ENOTFOUND where it names none of them; out is filled all the same. Pure,
 * any thread. */
HEDDLE_API heddle_status heddle_error_failure(const heddle_error *err, heddle_failure *out);

/* The library's version, "0.1.0". Static. Any thread. */
HEDDLE_API const char *heddle_version(void);

#ifdef __cplusplus
}
#endif

#endif
