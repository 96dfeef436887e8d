/* executor/routes/record.c: what tests found, in the user's cache folder, a small file an ordered pair of devices. A file
 * is of these devices, drivers, plugins and settings of theirs, or it is another file; a damaged one is as good as none. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cache_folder.h"
#include "core/registry.h"
#include "executor/routes/routes.h"

enum { MOST_PATH = 4096 };
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
  if (strcmp(rest, "cache_dir") == 0) return HEDDLE_OK;
  heddle__digest one = {{0, 0}}; /* summed, so that the order of settings does not count */
  heddle__digest_text(&one, rest);
  heddle__digest_text(&one, value);
  d->word[0] += one.word[0];
  d->word[1] += one.word[1];
  return HEDDLE_OK;
}

/* A device as it tells of itself, its plugin's file, since one that is built anew may copy otherwise, and the plugin's
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
  const char *folder;
  bool given; /* by the user: then it is a warning that it cannot be used */
  heddle__digest key;
  char path[MOST_PATH];
} place;

/* Each pair of devices would say the same. */
static bool is_first(const heddle_device *dev) {
  return !atomic_exchange(&dev->ctx->routes_unkept, true);
}

static bool is_off(const char *folder) {
  return strcmp(folder, "0") == 0 || strcmp(folder, "off") == 0 || strcmp(folder, "none") == 0;
}

static bool find_place(const heddle_device *from, const heddle_device *to, place *out) {
  const char *origin;
  if (!heddle__config_get(from->ctx->config, "routes.cache_dir", &out->folder, &origin) || is_off(out->folder) ||
      strlen(out->folder) > MOST_PATH - 100)
    return false;
  out->given = strcmp(origin, "default") != 0;
  if (out->folder[0] != '/') {
    if (is_first(from))
      heddle__routes_say(from, HEDDLE_LOG_WARN,
                         "what tests of routes find is not kept: routes.cache_dir has to be an absolute path, or off");
    return false;
  }
  out->key = (heddle__digest){{0, 0}};
  heddle__digest_text(&out->key, HEDDLE_VERSION);
  add_device(&out->key, from);
  add_device(&out->key, to);
  snprintf(out->path, sizeof out->path, "%s/route-%016llx%016llx.bin", out->folder,
           (unsigned long long)out->key.word[0], (unsigned long long)out->key.word[1]);
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

static bool load(const place *p, body *out) {
  if (!heddle__cache_folder_is_ours(p->folder)) return false;
  int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return false;
  struct stat info;
  bool good = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
              info.st_size == (off_t)sizeof *out && read(fd, out, sizeof *out) == (ssize_t)sizeof *out &&
              is_good(out, p);
  close(fd);
  return good;
}

bool heddle__route_record_read(const heddle_device *from, const heddle_device *to, heddle__route_record *out) {
  place p;
  body b;
  if (!find_place(from, to, &p) || !load(&p, &b)) return false;
  for (int r = 0; r <= HEDDLE__ROUTE_STAGED2; r++) {
    out->is_there[r] = b.routes[r].is_there != 0;
    out->costs[r] = (heddle__route_cost){b.routes[r].latency_ns, b.routes[r].ns_per_byte, true, b.routes[r].off != 0};
  }
  return true;
}

static void refuse(const heddle_device *dev, const place *p, const char *what, int code) {
  if (!is_first(dev)) return;
  heddle__routes_say(
      dev, p->given ? HEDDLE_LOG_WARN : HEDDLE_LOG_INFO,
      "what tests of routes find is not kept: %s: %s%s%s; routes.cache_dir can name a folder of yours, or "
      "be off",
      p->folder, what, code != 0 ? ": " : "", code != 0 ? strerror(code) : "");
}

void heddle__route_record_add(const heddle_device *from, const heddle_device *to, heddle__route route,
                              const heddle__route_cost *cost) {
  place p;
  body b;
  char aside[MOST_PATH + 64];
  if (!find_place(from, to, &p)) return;
  int code = heddle__cache_folder_make(p.folder);
  if (code != 0) {
    refuse(from, &p, "it could not be made", code);
    return;
  }
  if (!heddle__cache_folder_is_ours(p.folder)) {
    refuse(from, &p, "it is no folder, another user's, or everybody may write to it", 0);
    return;
  }
  if (!load(&p, &b)) memset(&b, 0, sizeof b);
  memcpy(b.magic, MAGIC, sizeof b.magic);
  b.key = p.key;
  b.routes[route].is_there = 1;
  b.routes[route].off = cost->off;
  b.routes[route].latency_ns = cost->latency_ns;
  b.routes[route].ns_per_byte = cost->ns_per_byte;
  seal(&b);
  snprintf(aside, sizeof aside, "%s.%ld-%llx", p.path, (long)getpid(), (unsigned long long)heddle__now_ns());
  int fd = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    refuse(from, &p, "no file can be made there", errno);
    return;
  }
  bool good = write(fd, &b, sizeof b) == (ssize_t)sizeof b;
  good = close(fd) == 0 && good;
  if (good && rename(aside, p.path) == 0) return;
  code = errno;
  (void)unlink(aside);
  refuse(from, &p, "a file there could not be finished", code);
}
