/* The calls of shader.h: the table of families, which plan's text each one translates, and what they have in common. */
#include "vulkan.h"

#include "shader.h"

#include <stdlib.h>

typedef struct family {
  const char *text, *name; /* of the plan's step; name NULL: any */
  vlk_family make;
} family;

static const family families[] = {
    {"elementwise", "fused", vlk_fused}, {"elementwise", NULL, vlk_elementwise},
    {"contract", NULL, vlk_contract},    {"rows", NULL, vlk_rows},
    {"reduce", NULL, vlk_reduce},        {"norm", NULL, vlk_norm},
    {"along", NULL, vlk_along},
};

extern const vlk_code vlk_codes[];
extern const uint32_t vlk_code_count;

const vlk_code *vlk_code_find(const char *name) {
  for (uint32_t i = 0; i < vlk_code_count; i++) {
    if (strcmp(vlk_codes[i].name, name) == 0) return &vlk_codes[i];
  }
  return NULL;
}

heddle_status vlk_shader_of(const heddle_host *host, const vlk_info *info, const k_step *step, uint32_t halves,
                            vlk_shader *out, heddle_error *err) {
  char word[VLK_OPTION_BYTES];
  vlk_family make = NULL;
  memset(out, 0, sizeof *out);
  out->groups = step->groups;
  out->halves = halves;
  out->n_operands = step->n_args;
  if (step->is_portable) make = vlk_portable;
  for (size_t i = 0; i < sizeof families / sizeof families[0] && make == NULL; i++) {
    if (strcmp(families[i].text, step->text) == 0 &&
        (families[i].name == NULL || strcmp(families[i].name, step->name) == 0))
      make = families[i].make;
  }
  if (make == NULL)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "there is no shader '%s' of '%s' yet", step->name, step->text);
  if (vlk_option(step, "IDX", word) && strcmp(word, "int") != 0)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "an operand has more elements than its shaders count, 2147479552");
  heddle_status s = make(host, info, step, out, err);
  if (s == HEDDLE_OK && out->wide)
    s = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "a size or step of it is over 2147483647, more than its shaders count");
  if (s == HEDDLE_OK && out->n_operands + 1 > info->max_bindings)
    s = p_fail(err, HEDDLE_EUNSUPPORTED, 0, "its shader has %u buffers, and a shader of this device %u at most",
               out->n_operands + 1, info->max_bindings);
  if (s == HEDDLE_OK && (out->n_specs > VLK_SPECS || out->n_params > VLK_PARAM_WORDS))
    s = p_fail(err, HEDDLE_EINTERNAL, 0, "shader '%s': %u constants and %u parameters", out->code->name, out->n_specs,
               out->n_params);
  if (s != HEDDLE_OK) vlk_shader_free(host, out);
  return s;
}

void vlk_shader_free(const heddle_host *host, vlk_shader *shader) {
  if (shader->made != NULL) host->free(host->ctx, shader->made);
  memset(shader, 0, sizeof *shader);
}

/* ---------------------------------------------------------------- for the families */

bool vlk_option(const k_step *step, const char *key, char word[VLK_OPTION_BYTES]) {
  const size_t length = strlen(key);
  for (const char *at = step->options; (at = strstr(at, "-D")) != NULL;) {
    at += 2;
    if (strncmp(at, key, length) != 0 || (at[length] != '=' && at[length] != ' ' && at[length] != '\0')) continue;
    at += length + (at[length] == '=');
    const size_t bytes = strcspn(at, " ");
    if (bytes >= VLK_OPTION_BYTES) return false;
    memcpy(word, at, bytes);
    word[bytes] = '\0';
    return true;
  }
  return false;
}

int32_t vlk_option_int(const k_step *step, const char *key, int32_t fallback) {
  char word[VLK_OPTION_BYTES];
  return vlk_option(step, key, word) ? (int32_t)strtol(word, NULL, 10) : fallback;
}

heddle_status vlk_pick_code(vlk_shader *out, heddle_error *err, const char *format, ...) {
  char name[64];
  va_list args;
  va_start(args, format);
  vsnprintf(name, sizeof name, format, args);
  va_end(args);
  out->code = vlk_code_find(name);
  if (out->code == NULL) return p_fail(err, HEDDLE_EINTERNAL, 0, "there is no variant '%s' of a shader", name);
  return HEDDLE_OK;
}

void vlk_spec(vlk_shader *out, uint32_t value) {
  if (out->n_specs < VLK_SPECS) out->specs[out->n_specs] = value;
  out->n_specs++;
}

static void put_word(vlk_shader *out, uint32_t word) {
  if (out->n_params < VLK_PARAM_WORDS) out->params[out->n_params] = word;
  out->n_params++;
}

void vlk_param(vlk_shader *out, int64_t value) {
  if (value < INT32_MIN || value > INT32_MAX) out->wide = true;
  put_word(out, (uint32_t)(int32_t)(out->wide ? 0 : value));
}

void vlk_params(vlk_shader *out, const int64_t *values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) vlk_param(out, values[i]);
}

void vlk_param_float(vlk_shader *out, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_word(out, bits);
}
