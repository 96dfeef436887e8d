/* conformance/kit_result.c: how a case's process reports the result of the case to its parent: lines on a pipe, and the
 * step it is in on a shared page. The first result ends the process. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/kit_side.h"

enum { MOST_TEXT = 2000 };

void kit_say(char letter, const char *text) {
  char line[MOST_TEXT + 4];
  size_t n = strlen(text);
  if (n > MOST_TEXT) n = MOST_TEXT;
  line[0] = letter;
  line[1] = ' ';
  for (size_t i = 0; i < n; i++) line[2 + i] = text[i] == '\n' || text[i] == '\r' ? ' ' : text[i];
  line[2 + n] = '\n';
  /* Fewer bytes than a pipe takes at once, so that lines of several threads do not mix. */
  ssize_t written = write(KIT_PIPE_FD, line, n + 3);
  (void)written; /* a parent that is gone needs no words */
}

void kit_say_and_end(char letter, const char *text) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  while (atomic_flag_test_and_set(&said)) pause(); /* another thread has said it, and ends the process */
  fflush(NULL);
  kit_say(letter, text);
  _exit(0);
}

void kit_step(kit *k, const char *what) {
  size_t n = strlen(what);
  char *out = k->side->page->what;
  if (n >= sizeof k->side->page->what) n = sizeof k->side->page->what - 1;
  memcpy(out, what, n);
  out[n] = '\0';
}

void kit_fault_is(kit *k, unsigned fault, unsigned call, unsigned status) {
  kit_page *page = k->side->page;
  unsigned none = KIT_FAULT_OTHER;
  if (!atomic_compare_exchange_strong(&page->fault, &none, fault)) return;
  atomic_store(&page->fault_call, call);
  atomic_store(&page->fault_status, status);
}

#define FORMAT(out) \
  va_list args; \
  va_start(args, format); \
  if (vsnprintf(out, sizeof out, format, args) < 0) out[0] = '\0'; \
  va_end(args)

void kit_fail(kit *k, const char *format, ...) {
  char text[MOST_TEXT];
  FORMAT(text);
  (void)k;
  kit_say_and_end(KIT_SAYS_FAIL, text);
}

void kit_skip(kit *k, const char *format, ...) {
  char text[MOST_TEXT];
  FORMAT(text);
  (void)k;
  kit_say_and_end(KIT_SAYS_SKIP, text);
}

void kit_note(kit *k, const char *format, ...) {
  char text[MOST_TEXT];
  FORMAT(text);
  (void)k;
  kit_say(KIT_SAYS_NOTE, text);
}

void kit_ability(kit *k, const char *name, bool works) {
  char text[64];
  (void)k;
  snprintf(text, sizeof text, "%.40s %d", name, works);
  kit_say(KIT_SAYS_ABILITY, text);
}

void kit_trial(kit *k, const char *name) {
  char text[64];
  (void)k;
  snprintf(text, sizeof text, "%.40s 0", name);
  kit_say(KIT_SAYS_TRIAL, text);
}

void kit_refused(kit *k, heddle_status status) {
  kit_fault_is(k, KIT_FAULT_STATUS, atomic_load(&k->side->page->last), (unsigned)status);
}

void kit_ok(kit *k, heddle_status status, const char *what) {
  kit_step(k, what);
  if (status == HEDDLE_OK) return;
  kit_refused(k, status);
  k->err.text[sizeof k->err.text - 1] = '\0';
  kit_fail(k, "%s: %s, with the words \"%s\"", what, kit_status_name(status), k->err.text);
}

void kit_fails(kit *k, heddle_status status, heddle_status one, heddle_status other, const char *what) {
  kit_step(k, what);
  if (status != one && status != other) {
    k->err.text[sizeof k->err.text - 1] = '\0';
    kit_fail(k, "%s gave %s, where %s%s%s is promised%s%s", what, kit_status_name(status), kit_status_name(one),
             one == other ? "" : " or ", one == other ? "" : kit_status_name(other),
             status == HEDDLE_OK ? "" : "; its words: ", status == HEDDLE_OK ? "" : k->err.text);
  }
  if (status == HEDDLE_OK) return;
  const char *fault = contract_text_fault(k->err.text, sizeof k->err.text);
  if (fault != NULL) kit_fail(k, "%s failed, and its error text %s", what, fault);
  if (k->err.text[0] == '\0') kit_fail(k, "%s failed with %s and no words", what, kit_status_name(status));
  if (k->err.status != status)
    kit_fail(k, "%s returned %s, and its heddle_error says status %d", what, kit_status_name(status),
             (int)k->err.status);
}
