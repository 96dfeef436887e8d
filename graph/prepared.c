/* graph/prepared.c: reads the index of what a package has prepared. It is untrusted: whatever is wrong with it makes it
 * unusable, and the package is as one without. */
#include "graph/prepared.h"

#include <string.h>

#include "core/alloc.h"
#include "graph/package.h"

enum { MOST_INDEX = 16 << 20, MOST_NAME = 159 };

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text != NULL ? text : "";
}

static bool read_target(heddle__prepared_target *t, const json_t *object) {
  const json_t *devices = json_object_get(object, "devices");
  t->list = text_of(object, "for");
  t->devices = heddle__alloc(json_array_size(devices), sizeof *t->devices);
  if (t->devices == NULL) return false;
  t->n_devices = (uint32_t)json_array_size(devices);
  for (uint32_t i = 0; i < t->n_devices; i++) {
    const json_t *d = json_array_get(devices, i);
    t->devices[i] =
        (heddle__prepared_device){text_of(d, "name"), text_of(d, "about"), text_of(d, "driver"), text_of(d, "build")};
  }
  return true;
}

static bool read_number(const json_t *object, const char *key, uint64_t *out) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
  *out = (uint64_t)json_integer_value(value);
  return true;
}

static bool read_file(heddle__prepared *p, heddle__prepared_file *f, const json_t *object, const unsigned char *package,
                      uint64_t bytes) {
  uint64_t at = 0, target = 0;
  const json_t *digest = json_object_get(object, "digest");
  f->name = text_of(object, "name");
  const size_t n = strlen(f->name);
  if (n == 0 || n > MOST_NAME || strchr(f->name, '/') != NULL || !read_number(object, "at", &at) ||
      !read_number(object, "bytes", &f->bytes) || !read_number(object, "target", &target) || target >= p->n_targets ||
      at % HEDDLE__PACKAGE_PAGE != 0 || at > bytes || f->bytes > bytes - at || json_array_size(digest) != 2)
    return false;
  for (size_t i = 0; i < 2; i++) {
    const json_t *word = json_array_get(digest, i);
    if (!json_is_integer(word)) return false;
    f->digest.word[i] = (uint64_t)json_integer_value(word);
  }
  f->data = package + at;
  f->target = (uint32_t)target;
  return true;
}

static const char *read_all(heddle__prepared *p, const unsigned char *package, uint64_t bytes) {
  const json_t *targets = json_object_get(p->root, "targets"), *files = json_object_get(p->root, "files");
  p->version = text_of(p->root, "heddle");
  p->targets = heddle__alloc(json_array_size(targets), sizeof *p->targets);
  p->files = heddle__alloc(json_array_size(files), sizeof *p->files);
  if (p->targets == NULL || p->files == NULL) return "there is no memory";
  for (size_t i = 0; i < json_array_size(targets); i++, p->n_targets++)
    if (!read_target(&p->targets[i], json_array_get(targets, i))) return "there is no memory";
  for (size_t i = 0; i < json_array_size(files); i++, p->n_files++)
    if (!read_file(p, &p->files[i], json_array_get(files, i), package, bytes))
      return "a file of its index is malformed, or lies outside of the package, which is cut off";
  return NULL;
}

heddle__prepared *heddle__prepared_read(const unsigned char *package, uint64_t bytes, uint64_t at, uint64_t length,
                                        const heddle__digest *digest) {
  heddle__digest is = {{0, 0}};
  heddle__prepared *p = heddle__alloc(1, sizeof *p);
  if (p == NULL) return NULL;
  if (at > bytes || length > bytes - at) {
    p->why = "its index lies outside of the package, which is cut off";
    return p;
  }
  if (length > MOST_INDEX) {
    p->why = "its index is too long";
    return p;
  }
  heddle__digest_add(&is, package + at, length);
  if (!heddle__digest_same(&is, digest)) {
    p->why = "its index is damaged";
    return p;
  }
  p->root = json_loadb((const char *)package + at, (size_t)length, JSON_REJECT_DUPLICATES, NULL);
  p->why = p->root != NULL ? read_all(p, package, bytes) : "its index is no JSON text";
  return p;
}

void heddle__prepared_free(heddle__prepared *p) {
  if (p == NULL) return;
  for (uint32_t i = 0; i < p->n_targets; i++) heddle__free(p->targets[i].devices);
  heddle__free(p->targets);
  heddle__free(p->files);
  json_decref(p->root);
  heddle__free(p);
}
