/* executor/control/timed.c: the profile of a run in stages: the steps of all its inner runs, one after another, those of a
 * graph that runs several times each time. Names are copied, once each: what is planned anew takes its own with it. */
#include <string.h>

#include "executor/control/stages.h"
#include "core/alloc.h"
#include "core/error.h"

void ctl_time(heddle__staged *st, bool timed) {
  st->timed = timed;
  st->n_entries = 0;
}

void ctl_timed_free(heddle__staged *st) {
  for (size_t i = 0; i < st->n_words; i++) heddle__free(st->words[i]);
  heddle__free(st->words);
  heddle__free(st->entries);
}

/* The executor's own copy of a name; NULL where memory is out. */
static const char *keep_word(heddle__staged *st, const char *word) {
  for (size_t i = 0; i < st->n_words; i++)
    if (strcmp(st->words[i], word) == 0) return st->words[i];
  if (st->n_words == st->max_words) {
    const size_t more = 2 * st->max_words + 32;
    char **grown = heddle__grow(st->words, st->n_words, more, sizeof *grown);
    if (grown == NULL) return NULL;
    st->words = grown;
    st->max_words = more;
  }
  char *copy = heddle__strdup(word);
  if (copy != NULL) st->words[st->n_words++] = copy;
  return copy;
}

static heddle_status add(heddle__staged *st, const heddle_profile_entry *e, heddle_error *err) {
  if (st->n_entries == st->max_entries) {
    const size_t more = 2 * st->max_entries + 64;
    heddle_profile_entry *grown = heddle__grow(st->entries, st->n_entries, more, sizeof *grown);
    if (grown == NULL) return heddle__no_memory(err, "a profile");
    st->entries = grown;
    st->max_entries = more;
  }
  heddle_profile_entry *to = &st->entries[st->n_entries];
  *to = *e;
  to->step = (uint32_t)st->n_entries++;
  to->name = keep_word(st, e->name);
  to->op = keep_word(st, e->op);
  to->device = keep_word(st, e->device);
  const bool whole = to->name != NULL && to->op != NULL && to->device != NULL;
  return whole ? HEDDLE_OK : heddle__no_memory(err, "a profile");
}

heddle_status ctl_note_times(heddle__staged *st, heddle_executor *ex, heddle_error *err) {
  const heddle_profile_entry *entries = NULL;
  size_t n = 0;
  heddle_status s = HEDDLE_OK;
  if (ex->staged != NULL) ctl_profile(ex->staged, &entries, &n);
  else s = heddle__profile_finish(ex->profile, ex->bound, &entries, &n, err);
  for (size_t i = 0; i < n && s == HEDDLE_OK; i++) s = add(st, &entries[i], err);
  return s;
}

void ctl_profile(const heddle__staged *st, const heddle_profile_entry **out, size_t *n) {
  *out = st->entries;
  *n = st->n_entries;
}
