/* The double of NVRTC: compiles by PoCL to find errors, and gives out the source as an image that the double of the
 * driver builds again. It takes what is OpenCL C too. FAKE_GPU_NVRTC_ARCHS: the architectures that it knows,
 * "75,80". */
#pragma GCC visibility push(default)
#include <nvrtc.h>
#pragma GCC visibility pop

#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARCHS 32

static bool fits(const char *image, const char *device) {
  (void)image, (void)device;
  return false;
}
const eng_flavour eng_flavour_own = {"nvrtc", NULL, fits};

struct _nvrtcProgram {
  char *source, *image, *log;
  size_t bytes;
  bool is_ptx;
};

/* ---------------------------------------------------------------- about the compiler */

nvrtcResult nvrtcVersion(int *major, int *minor) {
  ENG_CALL_EARLY("nvrtcVersion");
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}

static int archs(int *out) {
  static const int known[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
  const char *at = getenv("FAKE_GPU_NVRTC_ARCHS");
  int n = 0;
  if (at == NULL) {
    memcpy(out, known, sizeof known);
    return (int)(sizeof known / sizeof *known);
  }
  while (*at != '\0' && n < ARCHS) {
    char *end = NULL;
    out[n++] = (int)strtol(at, &end, 10);
    at = *end == ',' ? end + 1 : end;
    if (*end != ',') break;
  }
  return n;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
  ENG_CALL_EARLY("nvrtcGetNumSupportedArchs");
  int all[ARCHS];
  *count = archs(all);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *out) {
  ENG_CALL_EARLY("nvrtcGetSupportedArchs");
  int all[ARCHS];
  const int n = archs(all);
  memcpy(out, all, (size_t)n * sizeof *out);
  return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult code) {
  static const char *const names[] = {"NVRTC_SUCCESS",
                                      "NVRTC_ERROR_OUT_OF_MEMORY",
                                      "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                      "NVRTC_ERROR_INVALID_INPUT",
                                      "NVRTC_ERROR_INVALID_PROGRAM",
                                      "NVRTC_ERROR_INVALID_OPTION",
                                      "NVRTC_ERROR_COMPILATION",
                                      "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE"};
  const size_t i = (size_t)code;
  return i < sizeof names / sizeof *names ? names[i] : "NVRTC_ERROR unknown";
}

/* ---------------------------------------------------------------- programs */

nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *source, const char *name, int n_headers,
                               const char *const *headers, const char *const *include_names) {
  ENG_CALL_EARLY("nvrtcCreateProgram");
  (void)name, (void)headers, (void)include_names;
  if (out == NULL || source == NULL || n_headers < 0) return NVRTC_ERROR_INVALID_INPUT;
  *out = calloc(1, sizeof **out);
  if (*out == NULL) return NVRTC_ERROR_OUT_OF_MEMORY;
  (*out)->source = strdup(source);
  (*out)->log = calloc(1, 1);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
  ENG_CALL_EARLY("nvrtcDestroyProgram");
  if (program == NULL || *program == NULL) return NVRTC_ERROR_INVALID_PROGRAM;
  free((*program)->source);
  free((*program)->image);
  free((*program)->log);
  free(*program);
  *program = NULL;
  return NVRTC_SUCCESS;
}

/* ---------------------------------------------------------------- options */

typedef struct words {
  char arch[32], defines[4096];
} words;

/* The value of an option "NAME=VALUE" or "NAME" "VALUE", or NULL; *i moves over what was used. */
static const char *value_of(const char *name, int n, const char *const *options, int *i) {
  const size_t bytes = strlen(name);
  if (strncmp(options[*i], name, bytes) != 0) return NULL;
  if (options[*i][bytes] == '=') return options[*i] + bytes + 1;
  return options[*i][bytes] == '\0' && *i + 1 < n ? options[++*i] : NULL;
}

static bool is_harmless(const char *option) {
  static const char *const known[] = {"--std=",
                                      "-std=",
                                      "--fmad=",
                                      "-fmad=",
                                      "--ftz=",
                                      "-ftz=",
                                      "--prec-div=",
                                      "-prec-div=",
                                      "--prec-sqrt=",
                                      "-prec-sqrt=",
                                      "--use_fast_math",
                                      "-use_fast_math",
                                      "--device-as-default-execution-space",
                                      "-default-device",
                                      "--include-path=",
                                      "-I",
                                      "--generate-line-info",
                                      "-lineinfo",
                                      "--device-debug",
                                      "-G",
                                      "--disable-warnings",
                                      "-w",
                                      "--restrict",
                                      "-restrict",
                                      "--extra-device-vectorization",
                                      "--maxrregcount=",
                                      "--diag-suppress=",
                                      "--display-error-number",
                                      "--no-display-error-number",
                                      "-no-display-error-number",
                                      "--split-compile="};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strncmp(option, known[i], strlen(known[i])) == 0) return true;
  }
  return false;
}

static bool define(words *w, const char *text) {
  const size_t have = strlen(w->defines);
  return snprintf(w->defines + have, sizeof w->defines - have, "%s-D%s", have > 0 ? " " : "", text) <
         (int)(sizeof w->defines - have);
}

static bool read_option(words *w, int n, const char *const *options, int *i) {
  const char *value = value_of("--gpu-architecture", n, options, i);
  if (value == NULL) value = value_of("-arch", n, options, i);
  if (value != NULL) {
    snprintf(w->arch, sizeof w->arch, "%s", value);
    return true;
  }
  value = value_of("--define-macro", n, options, i);
  if (value != NULL) return define(w, value);
  if (strncmp(options[*i], "-D", 2) == 0 && options[*i][2] != '\0') return define(w, options[*i] + 2);
  return is_harmless(options[*i]);
}

static bool knows(const char *arch) {
  int all[ARCHS], wanted = 0;
  char tail[4] = "";
  const int n = archs(all);
  if (sscanf(arch, "sm_%d%3s", &wanted, tail) < 1 && sscanf(arch, "compute_%d%3s", &wanted, tail) < 1) return false;
  for (int i = 0; i < n; i++) {
    if (all[i] == wanted) return tail[0] == '\0' || tail[0] == 'a' || tail[0] == 'f';
  }
  return false;
}

static void set_log(nvrtcProgram program, const char *format, const char *what) {
  const size_t room = strlen(format) + strlen(what) + 1;
  free(program->log);
  program->log = malloc(room);
  if (program->log != NULL) snprintf(program->log, room, format, what);
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n, const char *const *options) {
  ENG_CALL_EARLY("nvrtcCompileProgram");
  words w = {"compute_75", ""};
  if (program == NULL) return NVRTC_ERROR_INVALID_PROGRAM;
  for (int i = 0; i < n; i++) {
    if (read_option(&w, n, options, &i)) continue;
    set_log(program, "nvrtc: error: unrecognized option %s found\n", options[i < n ? i : n - 1]);
    return NVRTC_ERROR_INVALID_OPTION;
  }
  if (!knows(w.arch)) {
    set_log(program, "nvrtc: error: invalid value for --gpu-architecture (%s)\n", w.arch);
    return NVRTC_ERROR_INVALID_OPTION;
  }
  free(program->image);
  free(program->log);
  program->is_ptx = w.arch[0] == 'c';
  if (eng_compile(program->source, w.defines, w.arch, &program->image, &program->bytes, &program->log))
    return NVRTC_SUCCESS;
  return NVRTC_ERROR_COMPILATION;
}

/* ---------------------------------------------------------------- what came of it */

static nvrtcResult image_of(nvrtcProgram program, bool ptx, size_t *bytes, char *out) {
  if (program == NULL) return NVRTC_ERROR_INVALID_PROGRAM;
  /* Of a virtual architecture there is PTX only; of a real one both. */
  const bool there = program->image != NULL && (ptx || !program->is_ptx);
  if (bytes != NULL) *bytes = there ? program->bytes : 0;
  if (out != NULL && there) memcpy(out, program->image, program->bytes);
  return there || (bytes != NULL && program->image != NULL) ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *bytes) {
  ENG_CALL_EARLY("nvrtcGetCUBINSize");
  return image_of(program, false, bytes, NULL);
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *out) {
  ENG_CALL_EARLY("nvrtcGetCUBIN");
  return image_of(program, false, NULL, out);
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *bytes) {
  ENG_CALL_EARLY("nvrtcGetPTXSize");
  return image_of(program, true, bytes, NULL);
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *out) {
  ENG_CALL_EARLY("nvrtcGetPTX");
  return image_of(program, true, NULL, out);
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *bytes) {
  ENG_CALL_EARLY("nvrtcGetProgramLogSize");
  if (program == NULL) return NVRTC_ERROR_INVALID_PROGRAM;
  *bytes = (program->log != NULL ? strlen(program->log) : 0) + 1;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *out) {
  ENG_CALL_EARLY("nvrtcGetProgramLog");
  if (program == NULL) return NVRTC_ERROR_INVALID_PROGRAM;
  const char *log = program->log != NULL ? program->log : "";
  memcpy(out, log, strlen(log) + 1);
  return NVRTC_SUCCESS;
}
