/* core/log.h: one line a message, to the caller's sink or stderr; off below the level. The library logs decisions. */
#ifndef HEDDLE_CORE_LOG_H
#define HEDDLE_CORE_LOG_H

#include <stdarg.h>
#include <stdbool.h>

#include "heddle/device.h"

typedef struct heddle__log {
  int32_t level; /* messages above it are dropped; HEDDLE_LOG_* */
  heddle_log_fn sink;
  void *user;
} heddle__log;

static inline bool heddle__log_on(const heddle__log *log, int32_t level) {
  return level <= log->level;
}
void heddle__logf(const heddle__log *log, int32_t level, const char *component, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void heddle__vlogf(const heddle__log *log, int32_t level, const char *component, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));

/* The same for a text that is ready. NULLs are taken. */
void heddle__log_line(const heddle__log *log, int32_t level, const char *component, const char *text);

/* Reads "off" or "0" (-1), "error", "warn", "info", "debug" or "trace"; false for anything else. */
bool heddle__log_level(const char *text, int32_t *out);

#endif
