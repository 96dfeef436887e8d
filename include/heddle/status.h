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

/* The library's version, "0.1.0". Static. Any thread. */
HEDDLE_API const char *heddle_version(void);

#ifdef __cplusplus
}
#endif

#endif
