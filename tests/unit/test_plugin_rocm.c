/* timeout: 120
 * What the rocm plugin has that cuda has not: HIP 5 and HIP 6 in one plugin, and its compiler in a process of its own,
 * heddle-hiprtc, on the doubles of both versions. */
#include "gpu_doubles.h"
#define GPU_PLUGIN "rocm"
#include "cuda_host.h"

#include <sys/stat.h>

#define HIP_5 HEDDLE_TEST_BUILD "/tests/fakes/rocm5/libamdhip64.so"

/* Enters the plugin with settings; the double of the version that the settings name, else HIP 6. Only on doubles. */
#define rocm_enter(t, ...) \
  do { \
    cuda_environment(); \
    if (gpu_is_real() || access(HIP_5, F_OK) != 0) SKIP("this is about the doubles of HIP"); \
    sim_enter((t), __VA_ARGS__); \
  } while (0)

/* ---------------------------------------------------------------- devices */

static void driver_words_are(sim_test *t, const char *words) {
  heddle_pdevice_desc desc = {.struct_size = sizeof desc};
  OK(t, t->p->device_describe(t->self, 1, &desc, &t->err));
  assert_int_equal(desc.type, HEDDLE_DEVICE_ROCM);
  assert_string_equal(desc.name, "Fake GPU 1");
  if (strncmp(desc.driver, words, strlen(words)) != 0) fail_msg("'%s' is not '%s'", desc.driver, words);
  assert_int_equal(desc.pci_bus, 2);
  assert_true(desc.memory_bytes > 0 && desc.compute_units == 4 && desc.alignment == 256);
}

static void hip_6_is_described(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_ARCH", "gfx90a:sramecc+:xnack-", 1);
  rocm_enter(&t, NULL);
  cuda_open_devices(&t, 1);
  driver_words_are(&t, "HIP 6.3, gfx90a:sramecc+:xnack-, hiprtc 9.0 (libamdhip64.so)");
  sim_close(&t);
}

static void hip_5_is_described(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_ARCH", "gfx1030", 1);
  rocm_enter(&t, "driver", HIP_5, "hiprtc", HIP_5, NULL);
  cuda_open_devices(&t, 1);
  driver_words_are(&t, "HIP 5.2, gfx1030, hiprtc 9.0 (libamdhip64.so)");
  sim_close(&t);
}

/* A driver whose architecture is no gfx name is of a version that is not known. */
static void an_unknown_struct_of_properties_is_refused(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_ARCH", "sm_90", 1);
  rocm_enter(&t, NULL);
  cuda_settings(&t);
  FAILS(&t, HEDDLE_ENODEV, "names no architecture", t.p->open_instance(&t.fake.table, &t.self, &t.err));
  assert_int_equal(atomic_load(&t.fake.live), 0);
}

static void no_device_is_said_in_words(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_INIT", "100", 1);
  rocm_enter(&t, NULL);
  cuda_settings(&t);
  FAILS(&t, HEDDLE_ENODEV, "hipErrorNoDevice (100): no ROCm-capable device is detected",
        t.p->open_instance(&t.fake.table, &t.self, &t.err));
  assert_non_null(strstr(t.err.text, "no HIP device"));
}

static void an_old_driver_is_named_with_what_it_lacks(void **state) {
  sim_test t;
  (void)state;
  rocm_enter(&t, "driver", HEDDLE_TEST_BUILD "/lib/heddle/plugins/libheddle_plugin_rocm.so", NULL);
  FAILS(&t, HEDDLE_ENODEV, "has no hipInit: the driver is older than ROCm 5.2",
        t.p->open_instance(&t.fake.table, &t.self, &t.err));
}

/* HIP has a current device in place of contexts: what the thread had is what it has after each call. */
static void the_current_device_stays(void **state) {
  sim_test t;
  int (*get)(int *) = NULL, (*set)(int) = NULL, at = -1;
  (void)state;
  rocm_enter(&t, NULL);
  cuda_open_devices(&t, 2);
  void *library = dlopen(getenv("HEDDLE_ROCM_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(library);
  void *symbols[2] = {dlsym(library, "hipGetDevice"), dlsym(library, "hipSetDevice")};
  memcpy(&get, &symbols[0], sizeof get);
  memcpy(&set, &symbols[1], sizeof set);
  for (int mine = 0; mine < 2; mine++) {
    assert_int_equal(set(mine), 0);
    for (int i = 0; i < 2; i++) {
      heddle_pstream *s = sim_stream(&t, t.dev[i]);
      heddle_pbuffer *b = sim_buf(&t, t.dev[i], HEDDLE_MEMORY_DEVICE, 4096);
      sim_fill(&t, s, b, 4096, 7);
      sim_expect(&t, s, b, 1024, 7);
      t.p->memory->free(t.dev[i], b);
      t.p->stream->close(s);
      assert_int_equal(get(&at), 0);
      assert_int_equal(at, mine);
    }
  }
  dlclose(library);
  sim_close(&t);
}

/* ---------------------------------------------------------------- the compiler */

/* Both OpenCL C, which the double runs, and HIP. */
static const char code[] = "#ifdef __OPENCL_VERSION__\n"
                           "__kernel void scale(__global float *y, __global const float *x, float by, int n) {\n"
                           "  int i = get_global_id(0);\n"
                           "#else\n"
                           "extern \"C\" __global__ void scale(float *y, const float *x, float by, int n) {\n"
                           "  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);\n"
                           "#endif\n"
                           "  if (i < n) y[i] = x[i] * by;\n"
                           "}\n";

static void check_scale(sim_test *t) {
  enum { N = 128 };
  heddle_pmodule *m = NULL;
  heddle_pkernel *k = NULL;
  float x[N], y[N];
  const float by = 3;
  const int32_t n = 100;
  heddle_pdevice *dev = t->dev[0];
  assert_string_equal(t->p->module->formats(t->self, 0), "hsaco,hip");
  OK(t, t->p->module->load(dev, "hip", code, sizeof code - 1, &m, &t->err));
  OK(t, t->p->module->kernel_get(m, "scale", &k, NULL, &t->err));
  heddle_pstream *stream = sim_stream(t, dev);
  heddle_pbuffer *a = sim_buf(t, dev, HEDDLE_MEMORY_DEVICE, sizeof x),
                 *b = sim_buf(t, dev, HEDDLE_MEMORY_DEVICE, sizeof y);
  for (int i = 0; i < N; i++) x[i] = (float)i;
  OK(t, t->p->copy->write(stream, a, 0, x, sizeof x, &t->err));
  sim_fill(t, stream, b, sizeof y, 0);
  heddle_pargument args[4] = {{b, 0, 0}, {a, 0, 0}, {NULL, 0, 4}, {NULL, 0, 4}};
  memcpy(&args[2].offset, &by, 4);
  memcpy(&args[3].offset, &n, 4);
  const uint32_t grid[3] = {2, 1, 1}, block[3] = {64, 1, 1};
  OK(t, t->p->module->launch(stream, k, grid, block, 0, args, 4, &t->err));
  OK(t, t->p->copy->read(stream, y, b, 0, sizeof y, &t->err));
  for (int i = 0; i < N; i++) assert_true(y[i] == (i < 100 ? 3.0f * (float)i : 0.0f));
  t->p->module->unload(m);
  t->p->memory->free(dev, a);
  t->p->memory->free(dev, b);
  t->p->stream->close(stream);
}

static void sources_are_compiled_by_the_helper_and_run(void **state) {
  sim_test t;
  (void)state;
  rocm_enter(&t, NULL);
  cuda_open_devices(&t, 1);
  check_scale(&t);
  sim_close(&t);
}

static void sources_run_on_hip_5_too(void **state) {
  sim_test t;
  (void)state;
  rocm_enter(&t, "driver", HIP_5, "hiprtc", HIP_5, NULL);
  cuda_open_devices(&t, 1);
  check_scale(&t);
  sim_close(&t);
}

/* Without the setting, the compiler is the one that comes with the driver. */
static void the_compiler_is_found_by_the_driver(void **state) {
  sim_test t;
  (void)state;
  rocm_enter(&t, NULL);
  unsetenv("HEDDLE_ROCM_HIPRTC");
  cuda_open_devices(&t, 1);
  check_scale(&t);
  sim_close(&t);
}

/* Compiling fails with the status and the words; the device goes on. */
static void compiling_fails(sim_test *t, heddle_status status, const char *words, const char *source) {
  heddle_pmodule *m = NULL;
  FAILS(t, status, words, t->p->module->load(t->dev[0], "hip", source, strlen(source), &m, &t->err));
  heddle_pstream *s = sim_stream(t, t->dev[0]);
  heddle_pbuffer *b = sim_buf(t, t->dev[0], HEDDLE_MEMORY_DEVICE, 64);
  sim_fill(t, s, b, 64, 7);
  sim_expect(t, s, b, 16, 7);
  t->p->memory->free(t->dev[0], b);
  t->p->stream->close(s);
}

static void a_wrong_source_gives_the_log(void **state) {
  sim_test t;
  (void)state;
  rocm_enter(&t, NULL);
  cuda_open_devices(&t, 1);
  compiling_fails(&t, HEDDLE_ECOMPILE, "made by a test", "#error made by a test\n");
  assert_non_null(strstr(t.err.text, "hiprtc 9.0 (libamdhip64.so) for gfx90a: "));
  assert_non_null(strstr(t.err.text, "rocm:0: "));
  sim_close(&t);
}

/* hiprtc 5.2 ends its process over an architecture that it does not know; later ones report it. */
static void a_compiler_that_crashes_is_an_error(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_ARCH", "gfx1100", 1);
  rocm_enter(&t, "driver", HIP_5, "hiprtc", HIP_5, NULL);
  cuda_open_devices(&t, 1);
  compiling_fails(&t, HEDDLE_ECOMPILE,
                  "hiprtc crashed with signal 6 (Aborted): most likely this version of it does not "
                  "know gfx1100",
                  code);
  assert_non_null(strstr(t.err.text, "munmap_chunk(): invalid pointer"));
  sim_close(&t);
}

static void an_unknown_architecture_is_an_error(void **state) {
  sim_test t;
  (void)state;
  setenv("FAKE_GPU_ARCH", "gfx9999", 1);
  rocm_enter(&t, NULL);
  cuda_open_devices(&t, 1);
  compiling_fails(&t, HEDDLE_ECOMPILE, "invalid target ID gfx9999", code);
  sim_close(&t);
}

static void no_compiler_is_said_in_words(void **state) {
  static const struct {
    const char *value, *words;
  } list[] = {
      {"off", "switched off (setting hiprtc)"},
      {"/nonexistent/libhiprtc.so", "there is no hiprtc, which compiles the kernels; install it"},
      {HEDDLE_TEST_BUILD "/lib/heddle/plugins/libheddle_plugin_rocm.so", "libheddle_plugin_rocm.so: it has no hiprtc"}};
  (void)state;
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    sim_test t;
    heddle_pdevice_desc desc = {.struct_size = sizeof desc};
    rocm_enter(&t, "hiprtc", list[i].value, NULL);
    cuda_open_devices(&t, 1);
    OK(&t, t.p->device_describe(t.self, 0, &desc, &t.err));
    assert_non_null(strstr(desc.driver, "no compiler"));
    compiling_fails(&t, HEDDLE_EUNSUPPORTED, list[i].words, code);
    sim_close(&t);
  }
}

/* ---------------------------------------------------------------- helpers that misbehave */

/* A helper of the test's own: lines of shell. */
static const char *write_helper(char *path, size_t bytes, const char *lines) {
  snprintf(path, bytes, "%s/tests/hiprtc-helper-%ld", HEDDLE_TEST_BUILD, (long)getpid());
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "#!/bin/sh\n%s\n", lines);
  fclose(f);
  assert_int_equal(chmod(path, 0700), 0);
  return path;
}

static void a_helper_that_misbehaves_is_an_error(void **state) {
  static const struct {
    const char *lines, *words;
  } list[] = {
      {"exec sleep 60", "hiprtc did not end within 1 s (setting hiprtc_seconds)"},
      {"echo something else; echo it broke >&2; exit 3", "ended without an answer (exit status 3): it broke"},
      {"echo heddle-hiprtc code 100 hiprtc; echo short", "ended without an answer"},
      {"echo heddle-hiprtc code 999999999999999999999 x", "ended without an answer"},
      {"echo heddle-hiprtc code 0 x", "for gfx90a"},
      {"cat >/dev/null; kill -SEGV $$", "crashed with signal 11"},
      {"exec sleep 60 0<&- 1>&-", "did not end within 1 s"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    sim_test t;
    char path[1024];
    cuda_environment();
    rocm_enter(&t, "hiprtc_helper", write_helper(path, sizeof path, list[i].lines), "hiprtc_seconds", "1", NULL);
    cuda_settings(&t);
    OK(&t, t.p->open_instance(&t.fake.table, &t.self, &t.err));
    heddle_pdevice_options options = {.struct_size = sizeof options};
    OK(&t, t.p->device->open(t.self, 0, &options, &t.dev[0], &t.err));
    compiling_fails(&t, HEDDLE_ECOMPILE, list[i].words, code);
    sim_close(&t);
    unlink(path);
  }
}

static void wrong_settings_are_refused(void **state) {
  static const struct {
    const char *key, *value, *words;
  } list[] = {{"hiprtc", "here", "setting hiprtc: 'here' is no absolute path"},
              {"hiprtc_helper", "here", "setting hiprtc_helper: 'here' is no absolute path"},
              {"hiprtc_helper", "/nonexistent/helper", "there is no program '/nonexistent/helper'"},
              {"hiprtc_seconds", "0", "'0' is no number from 1 to 86400"},
              {"hiprtc_seconds", "soon", "'soon' is no number"}};
  (void)state;
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    sim_test t;
    rocm_enter(&t, list[i].key, list[i].value, NULL);
    cuda_settings(&t);
    FAILS(&t, HEDDLE_EINVAL, list[i].words, t.p->open_instance(&t.fake.table, &t.self, &t.err));
    assert_int_equal(atomic_load(&t.fake.live), 0);
  }
}

/* A large program goes through whole, and while it is read the helper writes a lot, too. */
static void large_texts_go_both_ways(void **state) {
  enum { BYTES = 4 << 20 };
  sim_test t;
  heddle_pmodule *m = NULL;
  char *source = malloc(BYTES + sizeof code);
  (void)state;
  assert_non_null(source);
  memset(source, ' ', BYTES);
  memcpy(source + BYTES, code, sizeof code);
  rocm_enter(&t, NULL);
  cuda_open_devices(&t, 1);
  OK(&t, t.p->module->load(t.dev[0], "hip", source, strlen(source), &m, &t.err));
  t.p->module->unload(m);
  free(source);
  sim_close(&t);
}

/* Newer compilers of AMD's compress their bundles; the header of one says how long it is, from its version 2 on. */
static void compressed_bundles_are_measured(void **state) {
  static const struct {
    unsigned char bytes[32];
    const char *words;
  } list[] = {
      {{'C', 'C', 'O', 'B', 2, 0, 1, 0, 32}, "hipError"}, /* whole: HIP gets it, whose double refuses it */
      {{'C', 'C', 'O', 'B', 3, 0, 1, 0, 32}, "hipError"},
      {{'C', 'C', 'O', 'B', 2, 0, 1, 0, 33}, "cut off"},
      {{'C', 'C', 'O', 'B', 3, 0, 1, 0, 32, 0, 0, 0, 1}, "cut off"},
      {{'C', 'C', 'O', 'B', 1, 0, 1, 0, 32}, "does not say how long"},
  };
  sim_test t;
  heddle_pmodule *m = NULL;
  (void)state;
  rocm_enter(&t, NULL);
  cuda_open_devices(&t, 1);
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    FAILS(&t, HEDDLE_EFORMAT, list[i].words,
          t.p->module->load(t.dev[0], "hsaco", list[i].bytes, sizeof list[i].bytes, &m, &t.err));
  }
  FAILS(&t, HEDDLE_EFORMAT, "cut off", t.p->module->load(t.dev[0], "hsaco", list[0].bytes, 8, &m, &t.err));
  sim_close(&t);
}

CASES(CASE(compressed_bundles_are_measured), CASE(hip_6_is_described), CASE(hip_5_is_described),
      CASE(an_unknown_struct_of_properties_is_refused), CASE(no_device_is_said_in_words),
      CASE(an_old_driver_is_named_with_what_it_lacks), CASE(the_current_device_stays),
      CASE(sources_are_compiled_by_the_helper_and_run), CASE(sources_run_on_hip_5_too),
      CASE(the_compiler_is_found_by_the_driver), CASE(a_wrong_source_gives_the_log),
      CASE(a_compiler_that_crashes_is_an_error), CASE(an_unknown_architecture_is_an_error),
      CASE(no_compiler_is_said_in_words), CASE(a_helper_that_misbehaves_is_an_error), CASE(wrong_settings_are_refused),
      CASE(large_texts_go_both_ways))
