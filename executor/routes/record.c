/* executor/routes/record.c: what tests found, in the user's cache folder, a small file an ordered pair of devices. A file
 * is of these devices, drivers, plugins and settings of theirs, or it is another file; a damaged one is as good as none. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cache_folder.h"
#include "core/prepared.h"
#include "core/registry.h"
#include "executor/routes/routes.h"
#include "plugins/common/cachefile.h"

enum { DEFAULT_LIMIT = 16 << 20 };
#define MAGIC "HDLROUT1"

/* A file: no pointers, no padding. */
typedef struct body {
  char magic[8];
  heddle__digest key;
  struct {
    uint32_t is_there, off;
    double latency_ns, ns_per_byte;
  } routes[HEDDLE__ROUTE_STAGED2 + 1];
  heddle__digest self; /* of what stands before it */
} body;

/* ---- the key */

static heddle_status add_setting(void *user, const char *rest, const char *value, heddle_error *err) {
  heddle__digest *d = user;
  (void)err;
  if (strcmp(rest, "cache_dir") == 0 || strcmp(rest, "cache_bytes") == 0) return HEDDLE_OK;
  heddle__digest one = {{0, 0}}; /* summed, so that the order of settings does not count */
  heddle__digest_text(&one, rest);
  heddle__digest_text(&one, value);
  d->word[0] += one.word[0];
  d->word[1] += one.word[1];
  return HEDDLE_OK;
}

/* A device as it describes itself, its plugin's file, since one that is built anew may copy otherwise, and the plugin's
 * settings, which may choose how it does. */
static void add_device(heddle__digest *d, const heddle_device *dev) {
  struct stat file;
  char prefix[80];
  heddle__digest settings = {{0, 0}};
  heddle__digest_text(d, dev->name);
  heddle__digest_text(d, dev->plugin->root.build != NULL ? dev->plugin->root.build : "");
  heddle__digest_text(d, dev->desc.name);
  heddle__digest_text(d, dev->desc.driver);
  heddle__digest_add(d, dev->desc.uuid, sizeof dev->desc.uuid);
  heddle__digest_add(d, &dev->desc.caps, sizeof dev->desc.caps);
  if (stat(dev->plugin->path, &file) == 0) {
    const int64_t built[3] = {file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
    heddle__digest_add(d, built, sizeof built);
  }
  snprintf(prefix, sizeof prefix, "%s.", dev->plugin->name);
  (void)heddle__config_each(dev->ctx->config, prefix, add_setting, &settings, NULL);
  heddle__digest_add(d, &settings, sizeof settings);
}

/* ---- the file */

typedef struct place {
  cachefile_place at;
  bool given; /* by the user: then it is a warning that it cannot be used */
  heddle__digest key;
  char name[CACHEFILE_NAME];
} place;

/* Each pair of devices would say the same. */
static bool is_first(const heddle_device *dev) {
  heddle__route_table *table = heddle__route_table_of(dev->ctx);
  return table != NULL && !atomic_exchange(&table->said_unkept, true);
}

static bool is_off(const char *folder) {
  return strcmp(folder, "0") == 0 || strcmp(folder, "off") == 0 || strcmp(folder, "none") == 0;
}

/* What hinders is reported once, however many pairs of devices there are. */
static void say_first(const heddle_device *dev, const char *what) {
  if (is_first(dev)) heddle__routes_say(dev, HEDDLE_LOG_WARN, "what tests of routes find is not kept: %s", what);
}

static bool find_place(const heddle_device *from, const heddle_device *to, place *out) {
  const char *origin, *folder;
  heddle_error why;
  int64_t limit = 0;
  if (!heddle__config_get(from->ctx->config, "routes.cache_dir", &folder, &origin) || is_off(folder)) return false;
  out->given = strcmp(origin, "default") != 0;
  if (folder[0] != '/') {
    say_first(from, "routes.cache_dir has to be an absolute path, or off");
    return false;
  }
  if (heddle__context_number(from->ctx, "routes.cache_bytes", DEFAULT_LIMIT, 0, INT64_MAX, &limit, &why) != HEDDLE_OK)
    say_first(from, why.text);
  if (limit == 0) return false;
  out->key = (heddle__digest){{0, 0}};
  heddle__digest_text(&out->key, HEDDLE_VERSION);
  add_device(&out->key, from);
  add_device(&out->key, to);
  out->at = (cachefile_place){folder, "route-", ".bin", (uint64_t)limit};
  snprintf(out->name, sizeof out->name, "route-%016llx%016llx.bin", (unsigned long long)out->key.word[0],
           (unsigned long long)out->key.word[1]);
  return true;
}

static void seal(body *b) {
  b->self = (heddle__digest){{0, 0}};
  heddle__digest_add(&b->self, b, offsetof(body, self));
}

static bool is_good(const body *b, const place *p) {
  body now = *b;
  seal(&now);
  bool good = memcmp(b->magic, MAGIC, sizeof b->magic) == 0 && heddle__digest_same(&b->self, &now.self) &&
              heddle__digest_same(&b->key, &p->key);
  for (int r = 0; r <= HEDDLE__ROUTE_STAGED2 && good; r++)
    good = b->routes[r].latency_ns >= 0 && b->routes[r].latency_ns < 1e15 && b->routes[r].ns_per_byte >= 0 &&
           b->routes[r].ns_per_byte < 1e9;
  return good;
}

static bool load(const heddle_context *ctx, const place *p, body *out) {
  char why[CACHEFILE_WHY];
  uint64_t bytes = 0;
  const int file = cachefile_open(&p->at, p->name, sizeof *out, &bytes, why);
  if (file < 0) return heddle__shelf_copy(ctx, p->name, out, sizeof *out) == (int64_t)sizeof *out && is_good(out, p);
  const bool good = bytes == sizeof *out && cachefile_read(file, out, sizeof *out) && is_good(out, p);
  close(file);
  return good;
}

bool heddle__route_record_read(const heddle_device *from, const heddle_device *to, heddle__route_record *out) {
  place p;
  body b;
  if (!find_place(from, to, &p) || !load(from->ctx, &p, &b)) return false;
  for (int r = 0; r <= HEDDLE__ROUTE_STAGED2; r++) {
    out->is_there[r] = b.routes[r].is_there != 0;
    out->costs[r] = (heddle__route_cost){b.routes[r].latency_ns, b.routes[r].ns_per_byte, true, b.routes[r].off != 0};
  }
  return true;
}

void heddle__route_record_add(const heddle_device *from, const heddle_device *to, heddle__route route,
                              const heddle__route_cost *cost) {
  place p;
  body b;
  char why[CACHEFILE_WHY];
  if (!find_place(from, to, &p)) return;
  if (!load(from->ctx, &p, &b)) memset(&b, 0, sizeof b);
  memcpy(b.magic, MAGIC, sizeof b.magic);
  b.key = p.key;
  b.routes[route].is_there = 1;
  b.routes[route].off = cost->off;
  b.routes[route].latency_ns = cost->latency_ns;
  b.routes[route].ns_per_byte = cost->ns_per_byte;
  seal(&b);
  if (cachefile_write(&p.at, p.name, &b, sizeof b, why) || !is_first(from)) return;
  heddle__routes_say(
      from, p.given ? HEDDLE_LOG_WARN : HEDDLE_LOG_INFO,
      "what tests of routes find is not kept: %s: %s; routes.cache_dir can name a folder of yours, or be off",
      p.at.folder, why);
}
