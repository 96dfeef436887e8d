/* core/log.c: formats a message and hands it to the sink of the context, or to stderr.
 * A line is written with one call, so that lines of several threads do not mix. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "heddle/text.h"

static const char *const levels[] = {"error", "warning", "info", "debug", "trace"};

bool heddle__log_level(const char *text, int32_t *out) {
  static const char *const words[] = {"error", "warn", "info", "debug", "trace"};
  if (strcmp(text, "off") == 0 || strcmp(text, "0") == 0) return *out = -1, true;
  for (int32_t i = 0; i < (int32_t)(sizeof words / sizeof words[0]); i++)
    if (strcmp(text, words[i]) == 0 || strcmp(text, levels[i]) == 0) return *out = i, true;
  return false;
}

void heddle__log_line(const heddle__log *log, int32_t level, const char *component, const char *text) {
  if (!heddle__log_on(log, level)) return;
  char clean[2048], who[64];
  (void)heddle_text_clean(component != NULL ? component : "?", who, sizeof who);
  (void)heddle_text_clean(text != NULL ? text : "", clean, sizeof clean);
  component = who;
  text = clean;
  if (log->sink != NULL) {
    log->sink(log->user, level, component, text);
    return;
  }
  if (level < 0) level = 0;
  if (level > HEDDLE_LOG_TRACE) level = HEDDLE_LOG_TRACE;
  fprintf(stderr, "heddle %s: %s: %s\n", levels[level], component, text);
}

void heddle__vlogf(const heddle__log *log, int32_t level, const char *component, const char *format, va_list args) {
  if (!heddle__log_on(log, level)) return;
  char text[2048];
  if (vsnprintf(text, sizeof text, format, args) < 0) text[0] = '\0';
  heddle__log_line(log, level, component, text);
}

void heddle__logf(const heddle__log *log, int32_t level, const char *component, const char *format, ...) {
  va_list args;
  va_start(args, format);
  heddle__vlogf(log, level, component, format, args);
  va_end(args);
}
