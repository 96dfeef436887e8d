/* The calls of shader.h: the table of families, which of the plan's kernels each one translates, and what they have in common. */
#include "vulkan.h"

#include "shader.h"

/* Of a kernel, NULL for none; portable ones have one together. */
static const vlk_family families[KERNEL_TEXTS] = {
    [KERNEL_fused] = vlk_fused,       [KERNEL_same] = vlk_elementwise,    [KERNEL_flat] = vlk_elementwise,
    [KERNEL_walk] = vlk_elementwise,  [KERNEL_contract] = vlk_contract,   [KERNEL_direct] = vlk_contract,
    [KERNEL_thin] = vlk_contract,     [KERNEL_thin_down] = vlk_contract,  [KERNEL_softmax_group] = vlk_rows,
    [KERNEL_softmax_item] = vlk_rows, [KERNEL_reduce_group] = vlk_reduce, [KERNEL_reduce_item] = vlk_reduce,
    [KERNEL_batch_item] = vlk_norm,   [KERNEL_batch_plane] = vlk_norm,    [KERNEL_lrn] = vlk_norm,
    [KERNEL_norm_group] = vlk_norm,   [KERNEL_norm_item] = vlk_norm,      [KERNEL_arg_group] = vlk_along,
    [KERNEL_arg_item] = vlk_along,    [KERNEL_top_heap] = vlk_along,      [KERNEL_top_rank] = vlk_along,
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
  const k_kernel *kernel = &k_kernels[step->code.kernel];
  const vlk_family make = k_is_portable(step->code.kernel) ? vlk_portable : families[step->code.kernel];
  memset(out, 0, sizeof *out);
  out->groups = step->groups;
  out->halves = halves;
  out->n_operands = step->n_args;
  if (make == NULL)
    return p_fail(err, HEDDLE_EUNSUPPORTED, 0, "there is no shader '%s' of '%s' yet", kernel->name, kernel->text);
  if (step->code.wide)
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
