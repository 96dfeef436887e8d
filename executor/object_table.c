/* executor/object_table.c: texts by number and number by text, and sequences. Places of what was dropped are used again. */
#include "executor/objects.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "heddle/strings.h"
#include "plugins/common/fnv.h"

typedef struct text {
  char *bytes; /* NULL: the place is free, and next is the next free one */
  size_t n;
  uint32_t next; /* of the same bucket */
  bool held;
} text;

typedef struct list {
  heddle_tensor **items; /* NULL: the place is free */
  size_t n;
  uint32_t next; /* free place */
  bool held;
} list;

struct heddle__objects {
  text *texts;
  list *lists;
  uint32_t *buckets; /* the first text of each */
  uint32_t n_texts, max_texts, n_own, n_buckets, free_text, used_texts;
  uint32_t n_lists, max_lists, free_list, used_lists;
};

enum { MOST = INT32_MAX };

static uint64_t hash_of(const char *bytes, size_t n) {
  const uint64_t h = fnv1a(FNV1A_START, bytes, n);
  return h ^ h >> 29;
}

static uint32_t *bucket_of(const heddle__objects *o, const char *bytes, size_t n) {
  return &o->buckets[hash_of(bytes, n) & (o->n_buckets - 1)]; /* a power of two */
}

static bool more_buckets(heddle__objects *o) {
  const uint32_t n = o->n_buckets > 0 ? o->n_buckets * 2 : 64;
  if (n == 0) return false;
  uint32_t *buckets = heddle__alloc(n, sizeof *buckets);
  if (buckets == NULL) return false;
  for (uint32_t i = 0; i < n; i++) buckets[i] = HEDDLE__NONE;
  heddle__free(o->buckets);
  o->buckets = buckets;
  o->n_buckets = n;
  for (uint32_t i = 0; i < o->n_texts; i++) {
    if (o->texts[i].bytes == NULL) continue;
    uint32_t *first = bucket_of(o, o->texts[i].bytes, o->texts[i].n);
    o->texts[i].next = *first;
    *first = i;
  }
  return true;
}

heddle_status ctl_objects_make(const heddle_graph *g, heddle__objects **out, heddle_error *err) {
  heddle__objects *o = heddle__alloc(1, sizeof *o);
  *out = NULL;
  if (o == NULL) return heddle__no_memory(err, "the texts of a model");
  o->free_text = o->free_list = HEDDLE__NONE;
  heddle_status s = HEDDLE_OK;
  const char *own;
  for (uint64_t i = 0; s == HEDDLE_OK && (own = heddle_graph_string(g, i)) != NULL; i++) {
    int64_t code;
    s = ctl_text_code(o, own, strlen(own), &code, err);
    if (s == HEDDLE_OK && code != (int64_t)i)
      s = heddle__fail(err, HEDDLE_EFORMAT, "%s: strings: text %llu is there twice", g->source, (unsigned long long)i);
  }
  o->n_own = o->n_texts;
  if (s == HEDDLE_OK) *out = o;
  else ctl_objects_free(o);
  return s;
}

static void drop_text(heddle__objects *o, uint32_t i) {
  text *t = &o->texts[i];
  uint32_t *at = bucket_of(o, t->bytes, t->n);
  while (*at != i) at = &o->texts[*at].next;
  *at = t->next;
  heddle__free(t->bytes);
  t->bytes = NULL;
  t->next = o->free_text;
  o->free_text = i;
  o->used_texts--;
}

static void drop_list(heddle__objects *o, uint32_t i) {
  list *l = &o->lists[i];
  for (size_t k = 0; k < l->n; k++) heddle_tensor_release(l->items[k]);
  heddle__free(l->items);
  *l = (list){.next = o->free_list};
  o->free_list = i;
  o->used_lists--;
}

void ctl_objects_free(heddle__objects *o) {
  if (o == NULL) return;
  for (uint32_t i = 0; i < o->n_texts; i++) heddle__free(o->texts[i].bytes);
  for (uint32_t i = 0; i < o->n_lists; i++)
    if (o->lists[i].items != NULL) drop_list(o, i);
  heddle__free(o->texts);
  heddle__free(o->lists);
  heddle__free(o->buckets);
  heddle__free(o);
}

/* ---- texts */

static uint32_t new_text(heddle__objects *o) {
  if (o->free_text != HEDDLE__NONE) {
    const uint32_t i = o->free_text;
    o->free_text = o->texts[i].next;
    return i;
  }
  if (o->n_texts == MOST) return HEDDLE__NONE;
  if (o->n_texts == o->max_texts) {
    const uint32_t max = o->max_texts < MOST / 2 ? o->max_texts * 2 + 64 : MOST;
    text *more = heddle__grow(o->texts, o->n_texts, max, sizeof *more);
    if (more == NULL) return HEDDLE__NONE;
    o->texts = more;
    o->max_texts = max;
  }
  return o->n_texts++;
}

heddle_status ctl_text_code(heddle__objects *o, const char *bytes, size_t n, int64_t *code, heddle_error *err) {
  if (o->used_texts >= o->n_buckets && !more_buckets(o)) return heddle__no_memory(err, "a text");
  uint32_t *first = bucket_of(o, bytes, n);
  for (uint32_t i = *first; i != HEDDLE__NONE; i = o->texts[i].next) {
    if (o->texts[i].n != n || (n > 0 && memcmp(o->texts[i].bytes, bytes, n) != 0)) continue;
    *code = i;
    return HEDDLE_OK;
  }
  char *copy = n < SIZE_MAX ? heddle__alloc(n + 1, 1) : NULL;
  const uint32_t i = copy != NULL ? new_text(o) : HEDDLE__NONE;
  if (i == HEDDLE__NONE) {
    const bool is_full = copy != NULL && o->n_texts == MOST;
    heddle__free(copy);
    return is_full ? heddle__fail(err, HEDDLE_ELIMIT, "a run has more than 2^31 texts")
                   : heddle__no_memory(err, "a text");
  }
  if (n > 0) memcpy(copy, bytes, n);
  o->texts[i] = (text){.bytes = copy, .n = n, .next = *first};
  *first = i;
  o->used_texts++;
  *code = i;
  return HEDDLE_OK;
}

heddle_status ctl_text(const heddle__objects *o, int64_t code, const char **out, size_t *n, heddle_error *err) {
  if (code < 0 || code >= (int64_t)o->n_texts || o->texts[code].bytes == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "%lld is the number of no text", (long long)code);
  *out = o->texts[code].bytes;
  *n = o->texts[code].n;
  return HEDDLE_OK;
}

/* ---- sequences */

heddle_status ctl_list_make(heddle__objects *o, heddle_tensor *const *items, size_t n, int64_t *handle,
                            heddle_error *err) {
  heddle_tensor **copy = heddle__alloc(n + 1, sizeof *copy);
  uint32_t i = o->free_list;
  if (copy == NULL) return heddle__no_memory(err, "a sequence");
  if (i != HEDDLE__NONE) {
    o->free_list = o->lists[i].next;
  } else {
    if (o->n_lists == o->max_lists) {
      list *more =
          o->max_lists < MOST / 2 ? heddle__grow(o->lists, o->n_lists, o->max_lists * 2 + 16, sizeof *more) : NULL;
      if (more == NULL) {
        heddle__free(copy);
        return heddle__no_memory(err, "a sequence");
      }
      o->lists = more;
      o->max_lists = o->max_lists * 2 + 16;
    }
    i = o->n_lists++;
  }
  for (size_t k = 0; k < n; k++) copy[k] = heddle_tensor_retain(items[k]);
  o->lists[i] = (list){.items = copy, .n = n};
  o->used_lists++;
  *handle = HEDDLE_NO_OBJECT - 1 - (int64_t)i;
  return HEDDLE_OK;
}

static bool is_list(const heddle__objects *o, int64_t handle) {
  const int64_t i = HEDDLE_NO_OBJECT - 1 - handle;
  return handle < HEDDLE_NO_OBJECT && handle >= -(int64_t)MOST && i < (int64_t)o->n_lists && o->lists[i].items != NULL;
}

heddle_status ctl_list(const heddle__objects *o, int64_t handle, heddle_tensor *const **items, size_t *n,
                       heddle_error *err) {
  if (handle == HEDDLE_NO_OBJECT) return heddle__fail(err, HEDDLE_EINVAL, "the optional is empty");
  if (!is_list(o, handle))
    return heddle__fail(err, HEDDLE_EINVAL, "%lld is the number of no sequence", (long long)handle);
  *items = o->lists[HEDDLE_NO_OBJECT - 1 - handle].items;
  *n = o->lists[HEDDLE_NO_OBJECT - 1 - handle].n;
  return HEDDLE_OK;
}

/* ---- what goes */

static heddle_status hold(heddle__objects *o, const heddle_tensor *t, heddle_error *err) {
  if (t == NULL || t->count == 0 || t->dtype.code != HEDDLE_DTYPE_INT || t->dtype.bits != 64 || t->dtype.lanes != 1)
    return HEDDLE_OK;
  int64_t *numbers = heddle__alloc((size_t)t->count, sizeof *numbers);
  if (numbers == NULL) return heddle__no_memory(err, "the texts of an input");
  heddle_status s = heddle__tensor_read(t, numbers, err);
  for (uint64_t k = 0; k < t->count && s == HEDDLE_OK; k++) {
    const int64_t code = numbers[k];
    if (code >= 0 && code < (int64_t)o->n_texts) {
      o->texts[code].held = true;
    } else if (is_list(o, code)) {
      list *l = &o->lists[HEDDLE_NO_OBJECT - 1 - code];
      const bool was_held = l->held;
      l->held = true; /* before its items: a sequence of sequences ends here */
      for (size_t i = 0; i < l->n && !was_held && s == HEDDLE_OK; i++) s = hold(o, l->items[i], err);
    }
  }
  heddle__free(numbers);
  return s;
}

heddle_status ctl_objects_sweep(heddle__objects *o, heddle_tensor *const *holders, size_t n, heddle_error *err) {
  heddle_status s = HEDDLE_OK;
  if (o->used_texts == o->n_own && o->used_lists == 0) return HEDDLE_OK;
  for (uint32_t i = 0; i < o->n_texts; i++) o->texts[i].held = i < o->n_own;
  for (uint32_t i = 0; i < o->n_lists; i++) o->lists[i].held = false;
  for (size_t i = 0; i < n && s == HEDDLE_OK; i++) s = hold(o, holders[i], err);
  for (uint32_t i = 0; i < o->n_texts && s == HEDDLE_OK; i++)
    if (!o->texts[i].held && o->texts[i].bytes != NULL) drop_text(o, i);
  for (uint32_t i = 0; i < o->n_lists && s == HEDDLE_OK; i++)
    if (!o->lists[i].held && o->lists[i].items != NULL) drop_list(o, i);
  return s;
}
