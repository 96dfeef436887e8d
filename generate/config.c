/* generate/config.c: reads genai_config.json, config.json and generation_config.json. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/whole_file.h"
#include "generate/generator.h"
#include "graph/reader.h"

enum { MOST_BYTES = 16 << 20, MOST_DEPTH = 64 };

/* A JSON file that is read: values are asked for by their path in it. */
typedef struct document {
  const char *path;
  json_t *root;
  heddle_error *err;
  heddle_status status; /* the first failure */
} document;

static heddle_status read_document(const char *path, document *d, heddle_error *err) {
  void *text;
  size_t bytes;
  *d = (document){.path = path, .err = err};
  heddle_status s = heddle__file_read(path, MOST_BYTES, &text, &bytes, err);
  if (s != HEDDLE_OK) return s;
  s = heddle__json_parse(text, bytes, path, MOST_DEPTH, &d->root, err);
  heddle__free(text);
  if (s == HEDDLE_OK && !json_is_object(d->root)) {
    json_decref(d->root);
    return heddle__fail(err, HEDDLE_EFORMAT, "%s: an object is expected", path);
  }
  return s;
}

static void wrong(document *d, const char *key, const json_t *value, const char *expected) {
  char words[64];
  if (d->status == HEDDLE_OK)
    d->status = heddle__fail(d->err, HEDDLE_EFORMAT, "%s: '%s' is %s; expected %s", d->path, key,
                             heddle__json_words(value, words), expected);
}

static bool is_absent(const json_t *value) {
  return value == NULL || json_is_null(value);
}

static json_t *object_in(document *d, const json_t *in, const char *key) {
  json_t *value = json_object_get(in, key);
  if (is_absent(value)) return NULL;
  if (!json_is_object(value)) wrong(d, key, value, "an object");
  return json_is_object(value) ? value : NULL;
}

/* A number that the file may leave out. */
static void take_number(document *d, const json_t *in, const char *key, int64_t max, int64_t *out) {
  const json_t *value = json_object_get(in, key);
  char expected[64];
  snprintf(expected, sizeof expected, "a whole number from 1 to %lld", (long long)max);
  if (!is_absent(value) && !heddle__json_int(value, 1, max, out)) wrong(d, key, value, expected);
}

static void take_text(document *d, const json_t *in, const char *key, char *out, size_t size) {
  const json_t *value = json_object_get(in, key);
  if (is_absent(value)) return;
  if (!json_is_string(value) || json_string_length(value) >= size ||
      strlen(json_string_value(value)) != json_string_length(value))
    wrong(d, key, value, "a short text");
  else memcpy(out, json_string_value(value), json_string_length(value) + 1);
}

/* A token, or a list of them. */
static void take_stops(document *d, const json_t *in, heddle__generate_config *c) {
  const json_t *value = json_object_get(in, "eos_token_id");
  const size_t n = json_is_array(value) ? json_array_size(value) : 1;
  if (is_absent(value)) return;
  if (n > HEDDLE__GENERATE_STOPS) wrong(d, "eos_token_id", value, "at most 64 tokens");
  c->n_stops = 0;
  for (size_t i = 0; i < n && i < HEDDLE__GENERATE_STOPS; i++) {
    const json_t *one = json_is_array(value) ? json_array_get(value, i) : value;
    if (heddle__json_int(one, 0, INT32_MAX, &c->stops[c->n_stops])) c->n_stops++;
    else wrong(d, "eos_token_id", one, "tokens");
  }
}

static void take_bos(document *d, const json_t *in, heddle__generate_config *c) {
  const json_t *value = json_object_get(in, "bos_token_id");
  if (json_is_array(value)) value = json_array_get(value, 0);
  if (!is_absent(value) && !heddle__json_int(value, 0, INT32_MAX, &c->bos)) wrong(d, "bos_token_id", value, "a token");
}

/* The name of caches: one "%d", and no other '%' or what separates rules. */
static void check_pattern(document *d, const char *key, const char *pattern) {
  const char *at = strchr(pattern, '%');
  if (d->status == HEDDLE_OK &&
      (at == NULL || at[1] != 'd' || strpbrk(at + 1, "%") != NULL || strpbrk(pattern, ",:=*?") != NULL))
    d->status = heddle__fail(d->err, HEDDLE_EFORMAT, "%s: '%s' is '%s'; expected a name with one %%d for the layer",
                             d->path, key, pattern);
}

/* FOLDER/NAME; the name does not lead out of the folder. */
static heddle_status place_model(heddle__generate_config *c, const char *folder, const char *name, heddle_error *err) {
  if (c->model_path != NULL) return HEDDLE_OK; /* the caller names it */
  if (name[0] == '/' || strstr(name, "..") != NULL || name[0] == '\0')
    return heddle__fail(err, HEDDLE_EFORMAT, "%s: 'filename' is '%s'; expected a file in the same folder", c->path,
                        name);
  c->model_path = heddle__format("%s/%s", folder, name);
  return c->model_path != NULL ? HEDDLE_OK : heddle__no_memory(err, "a path");
}

static heddle_status read_genai(document *d, const char *folder, heddle__generate_config *c, heddle_error *err) {
  static const char *const past[2] = {"past_key_names", "past_value_names"};
  static const char *const present[2] = {"present_key_names", "present_value_names"};
  char file[256] = "";
  json_t *model = object_in(d, d->root, "model"), *decoder = object_in(d, model, "decoder");
  json_t *inputs = object_in(d, decoder, "inputs"), *outputs = object_in(d, decoder, "outputs");
  json_t *search = object_in(d, d->root, "search");
  if (d->status == HEDDLE_OK && decoder == NULL) wrong(d, "model.decoder", decoder, "an object");
  take_text(d, model, "type", c->type, sizeof c->type);
  take_number(d, model, "vocab_size", INT32_MAX, &c->vocabulary);
  take_number(d, model, "context_length", INT32_MAX, &c->context);
  take_stops(d, model, c);
  take_bos(d, model, c);
  take_text(d, decoder, "filename", file, sizeof file);
  take_number(d, decoder, "num_hidden_layers", 100000, &c->layers);
  take_number(d, decoder, "num_key_value_heads", 100000, &c->kv_heads);
  take_number(d, decoder, "head_size", 1000000, &c->head_size);
  take_text(d, inputs, "input_ids", c->ids, sizeof c->ids);
  take_text(d, inputs, "attention_mask", c->mask, sizeof c->mask);
  take_text(d, inputs, "position_ids", c->positions, sizeof c->positions);
  take_text(d, outputs, "logits", c->logits, sizeof c->logits);
  for (int k = 0; k < 2; k++) {
    take_text(d, inputs, past[k], c->past[k], sizeof c->past[k]);
    take_text(d, outputs, present[k], c->present[k], sizeof c->present[k]);
    check_pattern(d, past[k], c->past[k]);
    check_pattern(d, present[k], c->present[k]);
  }
  take_number(d, search, "max_length", INT32_MAX, &c->max_length);
  const json_t *shares = json_object_get(search, "past_present_share_buffer");
  if (shares != NULL && !json_is_boolean(shares)) wrong(d, "past_present_share_buffer", shares, "true or false");
  c->shares = json_is_true(shares);
  return d->status != HEDDLE_OK ? d->status : place_model(c, folder, file, err);
}

static bool is_file(const char *path) {
  struct stat info;
  return path != NULL && stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* The names that Optimum gives, or else the only ONNX model there. */
static heddle_status find_model(heddle__generate_config *c, const char *folder, heddle_error *err) {
  static const char *const names[] = {"model.onnx", "decoder_model_merged.onnx", "onnx/model.onnx",
                                      "onnx/decoder_model_merged.onnx"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char *path = heddle__format("%s/%s", folder, names[i]);
    if (path == NULL) return heddle__no_memory(err, "a path");
    if (is_file(path)) {
      c->model_path = path;
      return HEDDLE_OK;
    }
    heddle__free(path);
  }
  DIR *dir = opendir(folder);
  if (dir == NULL) return heddle__fail(err, HEDDLE_EIO, "%s: the folder cannot be read", folder);
  int found = 0;
  for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
    const size_t n = strlen(e->d_name);
    if (n <= 5 || strcmp(e->d_name + n - 5, ".onnx") != 0) continue;
    heddle__free(c->model_path);
    c->model_path = heddle__format("%s/%s", folder, e->d_name);
    found++;
  }
  closedir(dir);
  if (found > 1) return heddle__fail(err, HEDDLE_EINVAL, "%s has %d ONNX models; give the path of one", folder, found);
  if (found == 0) return heddle__fail(err, HEDDLE_ENOTFOUND, "%s has no ONNX model", folder);
  return c->model_path != NULL ? HEDDLE_OK : heddle__no_memory(err, "a path");
}

static void read_optimum(document *d, heddle__generate_config *c) {
  json_t *inner = object_in(d, d->root, "text_config");
  const json_t *in = inner != NULL ? inner : d->root;
  int64_t heads = 0, width = 0;
  take_text(d, d->root, "model_type", c->type, sizeof c->type);
  take_number(d, in, "vocab_size", INT32_MAX, &c->vocabulary);
  take_number(d, in, "max_position_embeddings", INT32_MAX, &c->context);
  take_number(d, in, "num_hidden_layers", 100000, &c->layers);
  take_number(d, in, "num_attention_heads", 100000, &heads);
  take_number(d, in, "hidden_size", INT32_MAX, &width);
  c->kv_heads = heads;
  c->head_size = heads > 0 ? width / heads : 0;
  take_number(d, in, "num_key_value_heads", 100000, &c->kv_heads);
  take_number(d, in, "head_dim", 1000000, &c->head_size);
  take_stops(d, d->root, c);
  take_bos(d, d->root, c);
}

/* Of generation_config.json, which may not be there. */
static heddle_status read_generation(const char *folder, heddle__generate_config *c, heddle_error *err) {
  document d;
  char *path = heddle__format("%s/generation_config.json", folder);
  if (path == NULL) return heddle__no_memory(err, "a path");
  heddle_status s = HEDDLE_OK;
  if (is_file(path)) {
    s = read_document(path, &d, err);
    if (s == HEDDLE_OK) {
      take_stops(&d, d.root, c);
      take_bos(&d, d.root, c);
      s = d.status;
      json_decref(d.root);
    }
  }
  heddle__free(path);
  return s;
}

void heddle__generate_config_names(heddle__generate_config *c) {
  c->bos = -1;
  strcpy(c->ids, "input_ids");
  strcpy(c->mask, "attention_mask");
  strcpy(c->positions, "position_ids");
  strcpy(c->logits, "logits");
  strcpy(c->past[0], "past_key_values.%d.key");
  strcpy(c->past[1], "past_key_values.%d.value");
  strcpy(c->present[0], "present.%d.key");
  strcpy(c->present[1], "present.%d.value");
}

static heddle_status read_folder(const char *folder, heddle__generate_config *c, heddle_error *err) {
  document d;
  heddle__generate_config_names(c);
  c->path = heddle__format("%s/genai_config.json", folder);
  const bool is_genai = is_file(c->path);
  if (!is_genai) {
    heddle__free(c->path);
    c->path = heddle__format("%s/config.json", folder);
  }
  if (c->path == NULL) return heddle__no_memory(err, "a path");
  if (!is_genai && !is_file(c->path))
    return heddle__fail(err, HEDDLE_ENOTFOUND, "%s has neither genai_config.json nor config.json", folder);
  heddle_status s = read_document(c->path, &d, err);
  if (s != HEDDLE_OK) return s;
  if (is_genai) {
    s = read_genai(&d, folder, c, err);
  } else {
    read_optimum(&d, c);
    s = d.status;
    if (s == HEDDLE_OK) s = read_generation(folder, c, err);
    if (s == HEDDLE_OK && c->model_path == NULL) s = find_model(c, folder, err);
  }
  json_decref(d.root);
  return s;
}

heddle_status heddle__generate_config_read(const char *path, heddle__generate_config *out, heddle_error *err) {
  struct stat info;
  *out = (heddle__generate_config){0};
  if (stat(path, &info) != 0) return heddle__fail(err, HEDDLE_EIO, "%s: there is no such file or folder", path);
  if (S_ISDIR(info.st_mode)) return read_folder(path, out, err);
  const char *slash = strrchr(path, '/');
  char *folder = slash != NULL ? heddle__strndup(path, (size_t)(slash - path) + (slash == path)) : heddle__strdup(".");
  char *file = heddle__strdup(path);
  if (folder == NULL || file == NULL) {
    heddle__free(folder);
    heddle__free(file);
    return heddle__no_memory(err, "a path");
  }
  out->model_path = file; /* whatever the configuration names */
  heddle_status s = read_folder(folder, out, err);
  heddle__free(folder);
  return s;
}

void heddle__generate_config_free(heddle__generate_config *c) {
  heddle__free(c->model_path);
  heddle__free(c->path);
  *c = (heddle__generate_config){0};
}
