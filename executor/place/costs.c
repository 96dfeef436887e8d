/* executor/place/costs.c: measured times by device and region. A device's file is text: a line that names the device's
 * digest, a line for each region (digest, picoseconds, margin, words for people), and a last line with a checksum. It is
 * written aside and renamed. */
#include "executor/place/costs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/prepared.h"
#include "core/registry.h"
#include "plugins/common/cachefile.h"
#include "plugins/common/fnv.h"

#define HEAD "heddle place 1 "
#define PREFIX "place-"
#define SUFFIX ".txt"
enum { MOST_FILE = 8 << 20, MOST_ENTRIES = 40000, MOST_LABEL = 120, DIGITS = 32 };

typedef struct entry {
  heddle__digest region;
  uint64_t ps, margin_ps;
  char label[MOST_LABEL];
  bool kept; /* it came from the disk */
} entry;

typedef struct heddle__cost_book {
  struct heddle__cost_book *next;
  const heddle_device *dev;
  heddle__digest key;
  entry *entries;
  uint32_t count, room;
  uint32_t
      *index; /* of twice the room, a power of two: numbers of entries plus 1 by their digests, in the first free */
  bool changed, damaged; /* damaged: the file, which was said */
} book;

void heddle__place_say(heddle_context *ctx, int32_t level, const char *format, ...) {
  va_list args;
  va_start(args, format);
  heddle__vlogf(&ctx->log, level, "place", format, args);
  va_end(args);
}

bool heddle__costs_start(heddle__costs *c) {
  return pthread_mutex_init(&c->lock, NULL) == 0;
}

void heddle__costs_finish(heddle__costs *c) {
  while (c->books != NULL) {
    book *b = c->books;
    c->books = b->next;
    heddle__free(b->entries);
    heddle__free(b->index);
    heddle__free(b);
  }
  pthread_mutex_destroy(&c->lock);
}

/* ---- books */

/* Where the index has the region, or a place for it. There is an index. */
static uint32_t *place_of(const book *b, const heddle__digest *region) {
  const uint32_t last = 2 * b->room - 1;
  uint32_t i = (uint32_t)(region->word[0] ^ region->word[1] >> 32) & last;
  while (b->index[i] != 0 && !heddle__digest_same(&b->entries[b->index[i] - 1].region, region)) i = (i + 1) & last;
  return &b->index[i];
}

static entry *find_cost(const book *b, const heddle__digest *region) {
  const uint32_t number = b->room > 0 ? *place_of(b, region) : 0;
  return number != 0 ? &b->entries[number - 1] : NULL;
}

/* All but the first ones are forgotten. */
static void keep_first(book *b, uint32_t count) {
  b->count = count;
  if (b->room > 0) memset(b->index, 0, 2 * (size_t)b->room * sizeof *b->index);
  for (uint32_t i = 0; i < count; i++) *place_of(b, &b->entries[i].region) = i + 1;
}

static bool grow(book *b) {
  const uint32_t room = b->room == 0 ? 64 : 2 * b->room;
  entry *more = heddle__alloc(room, sizeof *more);
  uint32_t *index = heddle__alloc(2 * (size_t)room, sizeof *index);
  if (more == NULL || index == NULL) {
    heddle__free(more);
    heddle__free(index);
    return false;
  }
  if (b->entries != NULL) memcpy(more, b->entries, b->count * sizeof *more);
  heddle__free(b->entries);
  heddle__free(b->index);
  b->entries = more;
  b->index = index;
  b->room = room;
  keep_first(b, b->count);
  return true;
}

/* A new entry, or the one that is there; NULL where there is no room. */
static entry *take(book *b, const heddle__digest *region) {
  entry *e = find_cost(b, region);
  if (e != NULL || b->count == MOST_ENTRIES) return e;
  if ((b->count == b->room && !grow(b)) || b->entries == NULL) return NULL;
  e = &b->entries[b->count++];
  e->region = *region;
  *place_of(b, region) = b->count;
  return e;
}

/* Settings of the plugin may make it faster or slower; where it keeps files does not. */
static heddle_status add_setting(void *user, const char *rest, const char *value, heddle_error *err) {
  (void)err;
  const size_t n = strlen(rest);
  if ((n >= 4 && strcmp(rest + n - 4, "_dir") == 0) || strcmp(rest, "cache_bytes") == 0) return HEDDLE_OK;
  heddle__digest_text(user, rest);
  heddle__digest_text(user, value);
  return HEDDLE_OK;
}

/* Who computes: the device as it describes itself, how it was set, and its plugin's file, since one that is built anew
 * may be faster. */
static heddle__digest key_of(const heddle__costs *c, const heddle_device *dev) {
  char prefix[80];
  heddle__digest d = {{0, 0}};
  struct stat file;
  const uint32_t threads = dev->plugin->host.parallelism(dev->plugin->host.ctx);
  heddle__digest_text(&d, HEDDLE_VERSION);
  heddle__digest_text(&d, dev->name);
  heddle__digest_text(&d, dev->plugin->root.build != NULL ? dev->plugin->root.build : "");
  heddle__digest_text(&d, dev->desc.name);
  heddle__digest_text(&d, dev->desc.driver);
  heddle__digest_add(&d, dev->desc.uuid, sizeof dev->desc.uuid);
  heddle__digest_add(&d, &threads, sizeof threads);
  snprintf(prefix, sizeof prefix, "%s.", dev->plugin->name);
  (void)heddle__config_each(c->ctx->config, prefix, add_setting, &d, NULL);
  if (stat(dev->plugin->path, &file) != 0) return d;
  const int64_t is[3] = {(int64_t)file.st_size, (int64_t)file.st_mtim.tv_sec, (int64_t)file.st_mtim.tv_nsec};
  heddle__digest_add(&d, is, sizeof is);
  return d;
}

/* ---- reading */

static void name_file(const book *b, char out[CACHEFILE_NAME]) {
  snprintf(out, CACHEFILE_NAME, PREFIX "%016llx%016llx" SUFFIX, (unsigned long long)b->key.word[0],
           (unsigned long long)b->key.word[1]);
}

static cachefile_place place_at(const heddle__costs *c) {
  return (cachefile_place){c->folder, PREFIX, SUFFIX, c->limit};
}

/* Other programs can write FNV-1a down in a line. */
static uint64_t checksum(const char *text, size_t bytes) {
  return fnv1a(FNV1A_START, text, bytes);
}

static bool read_hex(const char **p, uint32_t digits, uint64_t *out) {
  *out = 0;
  for (uint32_t i = 0; i < digits; i++, ++*p) {
    char ch = **p;
    if ((ch < '0' || ch > '9') && (ch < 'a' || ch > 'f')) return false;
    *out = *out << 4 | (uint64_t)(ch <= '9' ? ch - '0' : ch - 'a' + 10);
  }
  return true;
}

static bool read_number(const char **p, uint64_t *out) {
  if (*(*p)++ != ' ' || **p < '0' || **p > '9') return false;
  for (*out = 0; **p >= '0' && **p <= '9'; ++*p) {
    if (*out > UINT64_C(1) << 56) return false;
    *out = *out * 10 + (uint64_t)(**p - '0');
  }
  return **p == ' ';
}

/* One line; what the memory has already is stronger. */
static bool read_entry(book *b, const char *line) {
  heddle__digest region;
  uint64_t ps, margin;
  const char *p = line;
  if (!read_hex(&p, DIGITS / 2, &region.word[0]) || !read_hex(&p, DIGITS / 2, &region.word[1]) ||
      !read_number(&p, &ps) || !read_number(&p, &margin))
    return false;
  if (find_cost(b, &region) != NULL) return true;
  entry *e = take(b, &region);
  if (e == NULL) return true; /* full */
  e->ps = ps;
  e->margin_ps = margin;
  e->kept = true;
  snprintf(e->label, sizeof e->label, "%s", p + 1);
  return true;
}

static bool read_text(book *b, char *text, size_t bytes) {
  char head[64];
  uint64_t sum;
  snprintf(head, sizeof head, HEAD "%016llx%016llx\n", (unsigned long long)b->key.word[0],
           (unsigned long long)b->key.word[1]);
  const size_t last = strlen("end ") + 16 + 1;
  const char *p = text + bytes - last + 4;
  if (bytes < strlen(head) + last || memcmp(text, head, strlen(head)) != 0 || strncmp(p - 4, "end ", 4) != 0 ||
      !read_hex(&p, 16, &sum) || *p != '\n' || sum != checksum(text, bytes - last))
    return false;
  text[bytes - last] = '\0';
  for (char *line = text + strlen(head); *line != '\0';) {
    char *end = strchr(line, '\n');
    if (end == NULL) return false;
    *end = '\0';
    if (!read_entry(b, line)) return false;
    line = end + 1;
  }
  return true;
}

/* Of a package. */
static void read_offered(heddle__costs *c, book *b, const char *name) {
  const int64_t bytes = heddle__shelf_copy(c->ctx, name, NULL, 0);
  const uint32_t before = b->count;
  if (bytes <= 0 || bytes > MOST_FILE) return;
  char *text = heddle__alloc((size_t)bytes + 1, 1);
  if (text != NULL &&
      (heddle__shelf_copy(c->ctx, name, text, (uint64_t)bytes) != bytes || !read_text(b, text, (size_t)bytes)))
    keep_first(b, before);
  heddle__free(text);
}

static void read_file(heddle__costs *c, book *b) {
  char name[CACHEFILE_NAME], why[CACHEFILE_WHY];
  uint64_t bytes = 0;
  if (c->folder == NULL) return;
  const cachefile_place place = place_at(c);
  name_file(b, name);
  const int file = cachefile_open(&place, name, MOST_FILE, &bytes, why);
  if (file < 0) read_offered(c, b, name);
  if (file < 0 && why[0] == '\0') return;
  char *text = file >= 0 && bytes > 0 ? heddle__alloc((size_t)bytes + 1, 1) : NULL;
  const uint32_t before = b->count;
  bool good = text != NULL && cachefile_read(file, text, (size_t)bytes);
  if (file >= 0) close(file);
  if (good && !read_text(b, text, (size_t)bytes)) {
    good = false;
    keep_first(b, before);
  }
  if (!good && !b->damaged && file >= 0)
    heddle__place_say(c->ctx, HEDDLE_LOG_WARN, "%s/%s is damaged, and its times are measured anew", c->folder, name);
  b->damaged = !good;
  heddle__free(text);
}

/* The lock is held. */
static book *book_of(heddle__costs *c, const heddle_device *dev) {
  book *b = c->books;
  while (b != NULL && b->dev != dev) b = b->next;
  if (b != NULL) return b;
  b = heddle__alloc(1, sizeof *b);
  if (b == NULL) return NULL;
  b->dev = dev;
  b->key = key_of(c, dev);
  b->next = c->books;
  c->books = b;
  read_file(c, b);
  return b;
}

bool heddle__costs_find(heddle__costs *c, const heddle_device *dev, const heddle__digest *region, heddle__time *out) {
  pthread_mutex_lock(&c->lock);
  book *b = book_of(c, dev);
  entry *e = b != NULL ? find_cost(b, region) : NULL;
  if (e != NULL && e->kept && c->ignore_kept) e = NULL;
  if (e != NULL) *out = (heddle__time){(double)e->ps / 1000, (double)e->margin_ps / 1000};
  pthread_mutex_unlock(&c->lock);
  return e != NULL;
}

void heddle__costs_add(heddle__costs *c, const heddle_device *dev, const heddle__digest *region,
                       const heddle__time *time, const char *label) {
  pthread_mutex_lock(&c->lock);
  book *b = book_of(c, dev);
  entry *e = b != NULL ? take(b, region) : NULL;
  if (e != NULL) {
    e->ps = (uint64_t)(time->ns * 1000 + 0.5);
    e->margin_ps = (uint64_t)(time->margin * 1000 + 0.5);
    e->kept = false;
    snprintf(e->label, sizeof e->label, "%s", label);
    b->changed = true;
  }
  pthread_mutex_unlock(&c->lock);
}

/* ---- writing */

static size_t print(const book *b, char *text, size_t size) {
  size_t n = (size_t)snprintf(text, size, HEAD "%016llx%016llx\n", (unsigned long long)b->key.word[0],
                              (unsigned long long)b->key.word[1]);
  for (uint32_t i = 0; i < b->count; i++) {
    const entry *e = &b->entries[i];
    n += (size_t)snprintf(text + n, size - n, "%016llx%016llx %llu %llu %s\n", (unsigned long long)e->region.word[0],
                          (unsigned long long)e->region.word[1], (unsigned long long)e->ps,
                          (unsigned long long)e->margin_ps, e->label);
  }
  return n + (size_t)snprintf(text + n, size - n, "end %016llx\n", (unsigned long long)checksum(text, n));
}

static bool write_file(heddle__costs *c, book *b, char *why) {
  char name[CACHEFILE_NAME];
  const cachefile_place place = place_at(c);
  read_file(c, b); /* what others have added */
  const size_t size = 128 + (size_t)b->count * (DIGITS + 2 * 24 + MOST_LABEL);
  char *text = heddle__alloc(size, 1);
  if (text == NULL) {
    snprintf(why, CACHEFILE_WHY, "there is no memory");
    return false;
  }
  name_file(b, name);
  const bool good = cachefile_write(&place, name, text, print(b, text, size), why);
  heddle__free(text);
  b->changed = b->changed && !good;
  return good;
}

void heddle__costs_keep(heddle__costs *c) {
  char why[CACHEFILE_WHY];
  if (c->folder == NULL) return;
  pthread_mutex_lock(&c->lock);
  for (book *b = c->books; b != NULL; b = b->next) {
    if (!b->changed || write_file(c, b, why)) continue;
    heddle__place_say(c->ctx, c->folder_given ? HEDDLE_LOG_WARN : HEDDLE_LOG_INFO,
                      "measured times are not kept: %s: %s; place.cache_dir can name a folder of yours, or be off",
                      c->folder, why);
    break;
  }
  pthread_mutex_unlock(&c->lock);
}
