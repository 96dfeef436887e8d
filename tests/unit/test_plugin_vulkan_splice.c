/* SPIR-V of chains: what vlk_splice makes of the built template is valid by spirv-val where that is installed, calls what
 * it should, and damaged templates are refused without a byte beside them being read. */
#include "fake_host.h"

#include "plugins/common/expr.c"
#include "plugins/vulkan/splice.c"

#include <unistd.h>

typedef struct template {
  uint32_t *words;
  uint64_t bytes;
}
template;

static template read_built(void) {
  template t = {NULL, 0};
  FILE *file = fopen(HEDDLE_TEST_BUILD "/vulkan_shaders/fused.spv", "rb");
  if (file == NULL) SKIP("the plugin vulkan is not built");
  fseek(file, 0, SEEK_END);
  t.bytes = (uint64_t)ftell(file);
  rewind(file);
  t.words = malloc((size_t)t.bytes);
  assert_int_equal(fread(t.words, 1, (size_t)t.bytes, file), t.bytes);
  fclose(file);
  return t;
}

static expr parse(const char *text, uint32_t n_inputs) {
  expr e;
  heddle_error err;
  if (expr_parse(text, n_inputs, &e, &err) != HEDDLE_OK) fail_msg("%s: %s", text, err.text);
  return e;
}

/* Every operator, and as many inputs and steps as there may be. */
static const struct {
  uint32_t n_inputs;
  const char *text;
} expressions[] = {
    {1, "Relu(x0)"},
    {1, "Abs(Neg(Sqrt(Exp(Log(Tanh(Sigmoid(Erf(Gelu(Gelu(HardSwish(x0), approximate=tanh))))))))))"},
    {2, "Add(Elu(x0, alpha=0.5), HardSigmoid(x1, alpha=0.1, beta=0.7))"},
    {3, "Clip(PRelu(Div(x0, Pow(x1, 2)), x2), -1, inf)"},
    {8, "Max(x0, Min(x1, x2, LeakyRelu(x3)), Sub(x4, x5), Mul(x6, x7), 0.25)"},
    {8, "Add(Add(Add(Add(Add(Add(Add(x0, x1), x2), x3), x4), x5), x6), Add(Add(Add(Add(Add(Add(Add(Add(Add(Add(x7, 1), "
        "2), "
        "3), 4), 5), 6), 7), 8), x0), Abs(Abs(x1))))"},
};

static void spliced_chains_are_valid(void **state) {
  fake_host fake;
  template t = read_built();
  char path[] = HEDDLE_TEST_BUILD "/tests/spliced-XXXXXX", command[sizeof path + 128];
  heddle_error err;
  (void)state;
  fake_host_init(&fake);
  const int file = mkstemp(path);
  assert_true(file >= 0);
  const bool has_tool = system("spirv-val --version >/dev/null 2>&1") == 0;
  snprintf(command, sizeof command, "spirv-val --target-env vulkan1.1 '%s'", path);
  for (size_t i = 0; i < sizeof expressions / sizeof expressions[0]; i++) {
    uint32_t *made = NULL;
    uint64_t bytes = 0;
    const expr e = parse(expressions[i].text, expressions[i].n_inputs);
    assert_int_equal(vlk_splice(&fake.table, t.words, t.bytes, &e, &made, &bytes, &err), HEDDLE_OK);
    assert_true(bytes > 0 && bytes % 4 == 0);
    assert_int_equal(ftruncate(file, 0), 0);
    assert_int_equal(pwrite(file, made, (size_t)bytes, 0), bytes);
    if (has_tool && system(command) != 0) fail_msg("%s: not valid", expressions[i].text);
    fake.table.free(fake.table.ctx, made);
  }
  close(file);
  unlink(path);
  free(t.words);
  if (!has_tool) SKIP("spirv-val is not installed");
}

/* How often the body of the chain calls: once a step; its inputs are its parameters. */
static void chains_call_what_they_need(void **state) {
  fake_host fake;
  template t = read_built();
  heddle_error err;
  (void)state;
  fake_host_init(&fake);
  const expr e = parse("Mul(Add(x0, x1), Relu(x0))", 2);
  uint32_t *made = NULL, calls = 0, function = 0;
  uint64_t bytes = 0;
  assert_int_equal(vlk_splice(&fake.table, t.words, t.bytes, &e, &made, &bytes, &err), HEDDLE_OK);
  module m = {.words = made, .count = bytes / 4};
  assert_true(read_template(&m));
  for (uint64_t at = m.f.body_at; at < m.f.end_at; at += made[at] >> 16)
    calls += (made[at] & 0xffff) == OP_FUNCTION_CALL;
  assert_int_equal(calls, 3);
  function = made[m.f.body_at + 3]; /* of the first call: type, id, function, operands */
  assert_int_equal(function, m.f.ops[EXPR_Add]);
  assert_int_equal(made[m.f.body_at + 4], m.f.inputs[0]);
  assert_int_equal(made[m.f.body_at + 5], m.f.inputs[1]);
  fake.table.free(fake.table.ctx, made);
  free(t.words);
}

/* Cut anywhere, or with a word that is something else: refused, or a module, but never a crash. */
static void damaged_templates_are_refused(void **state) {
  fake_host fake;
  template t = read_built();
  heddle_error err;
  const expr e = parse("Tanh(x0)", 1);
  uint32_t seed = 17, refused = 0;
  (void)state;
  fake_host_init(&fake);
  for (uint64_t words = 0; words < t.bytes / 4; words += words < 64 ? 1 : 61) {
    uint32_t *cut = malloc((size_t)words * 4 + 1), *made = NULL; /* exactly so much, for AddressSanitizer */
    uint64_t bytes = 0;
    memcpy(cut, t.words, (size_t)words * 4);
    const heddle_status s = vlk_splice(&fake.table, cut, words * 4, &e, &made, &bytes, &err);
    if (s != HEDDLE_OK) assert_string_equal(err.text, "the template of chains lacks a function");
    if (s != HEDDLE_OK) refused++;
    fake.table.free(fake.table.ctx, made);
    free(cut);
  }
  assert_true(refused > 10);
  for (int i = 0; i < 2000; i++) {
    uint32_t *made = NULL;
    uint64_t bytes = 0;
    seed = seed * 1664525 + 1013904223;
    const uint64_t at = seed % (t.bytes / 4);
    const uint32_t was = t.words[at];
    t.words[at] = i % 3 == 0 ? 0 : i % 3 == 1 ? UINT32_MAX : seed;
    vlk_splice(&fake.table, t.words, t.bytes, &e, &made, &bytes, &err);
    fake.table.free(fake.table.ctx, made);
    t.words[at] = was;
  }
  free(t.words);
}

CASES(CASE(spliced_chains_are_valid), CASE(chains_call_what_they_need), CASE(damaged_templates_are_refused))
