/* The hiprtc of HIP's double: what it compiles, the double's modules load. Options: an architecture (its own, or of the
 * engine's device), macros, and what changes nothing here. */
#include "hip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct program {
  char *source, *image, *log;
  size_t bytes;
} program;

static program *program_of(hiprtcProgram p) {
  return (program *)(void *)p;
}

/* What hiprtc 5.2 knows of; a later one knows more. */
static bool known(const char *arch) {
  static const char *const names[] = {"gfx900", "gfx906",  "gfx908",  "gfx90a",  "gfx1010", "gfx1030", "gfx1031",
#ifndef FAKE_HIP_5
                                      "gfx942", "gfx1100", "gfx1101", "gfx1102", "gfx1200",
#endif
                                      NULL};
  const size_t length = strcspn(arch, ":");
  for (size_t i = 0; names[i] != NULL; i++) {
    if (strlen(names[i]) == length && strncmp(names[i], arch, length) == 0) return true;
  }
  return false;
}

/* Two words together, or NULL. */
static char *joined(const char *a, const char *b) {
  const size_t bytes = strlen(a) + strlen(b) + 1;
  char *out = malloc(bytes);
  if (out != NULL) snprintf(out, bytes, "%s%s", a, b);
  return out;
}

#pragma GCC visibility push(default)

const char *hiprtcGetErrorString(hiprtcResult result) {
  switch (result) {
  case HIPRTC_SUCCESS: return "HIPRTC_SUCCESS";
  case HIPRTC_ERROR_OUT_OF_MEMORY: return "HIPRTC_ERROR_OUT_OF_MEMORY";
  case HIPRTC_ERROR_INVALID_INPUT: return "HIPRTC_ERROR_INVALID_INPUT";
  case HIPRTC_ERROR_INVALID_PROGRAM: return "HIPRTC_ERROR_INVALID_PROGRAM";
  case HIPRTC_ERROR_INVALID_OPTION: return "HIPRTC_ERROR_INVALID_OPTION";
  case HIPRTC_ERROR_COMPILATION: return "HIPRTC_ERROR_COMPILATION";
  default: return "Invalid HIPRTC error code";
  }
}

hiprtcResult hiprtcVersion(int *major, int *minor) {
  *major = 9;
  *minor = 0;
  return HIPRTC_SUCCESS;
}

hiprtcResult hiprtcCreateProgram(hiprtcProgram *out, const char *source, const char *name, int n, const char **headers,
                                 const char **names) {
  (void)name, (void)headers, (void)names;
  if (out == NULL || source == NULL || n != 0) return HIPRTC_ERROR_INVALID_INPUT;
  program *p = calloc(1, sizeof *p);
  if (p != NULL) p->source = joined(source, "");
  if (p == NULL || p->source == NULL) {
    free(p);
    return HIPRTC_ERROR_OUT_OF_MEMORY;
  }
  *out = (hiprtcProgram)(void *)p;
  return HIPRTC_SUCCESS;
}

hiprtcResult hiprtcDestroyProgram(hiprtcProgram *handle) {
  if (handle == NULL || *handle == NULL) return HIPRTC_ERROR_INVALID_INPUT;
  program *p = program_of(*handle);
  free(p->source);
  free(p->image);
  free(p->log);
  free(p);
  *handle = NULL;
  return HIPRTC_SUCCESS;
}

hiprtcResult hiprtcCompileProgram(hiprtcProgram handle, int n, const char **options) {
  program *p = program_of(handle);
  const char *arch = "gfx90a";
  char macros[2048] = "";
  if (p == NULL) return HIPRTC_ERROR_INVALID_PROGRAM;
  for (int i = 0; i < n; i++) {
    if (strncmp(options[i], "--offload-arch=", 15) == 0) {
      arch = options[i] + 15;
    } else if (strncmp(options[i], "--gpu-architecture=", 19) == 0) {
      arch = options[i] + 19;
    } else if (strncmp(options[i], "-D", 2) == 0) {
      const size_t used = strlen(macros);
      snprintf(macros + used, sizeof macros - used, " %s", options[i]);
    } else if (strncmp(options[i], "-f", 2) != 0 && strncmp(options[i], "-O", 2) != 0) {
      p->log = joined("error: unknown argument: ", options[i]);
      return HIPRTC_ERROR_INVALID_OPTION;
    }
  }
  if (!known(arch)) {
#ifdef FAKE_HIP_5
    fprintf(stderr, "munmap_chunk(): invalid pointer\n");
    abort();
#else
    p->log = joined("error: invalid target ID ", arch);
    return HIPRTC_ERROR_COMPILATION;
#endif
  }
  free(p->image);
  free(p->log);
  p->image = p->log = NULL;
  return eng_compile(p->source, macros, arch, &p->image, &p->bytes, &p->log) ? HIPRTC_SUCCESS
                                                                             : HIPRTC_ERROR_COMPILATION;
}

hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram handle, size_t *out) {
  const program *p = program_of(handle);
  if (p == NULL) return HIPRTC_ERROR_INVALID_PROGRAM;
  *out = p->log != NULL ? strlen(p->log) + 1 : 1;
  return HIPRTC_SUCCESS;
}

hiprtcResult hiprtcGetProgramLog(hiprtcProgram handle, char *out) {
  const program *p = program_of(handle);
  if (p == NULL) return HIPRTC_ERROR_INVALID_PROGRAM;
  strcpy(out, p->log != NULL ? p->log : "");
  return HIPRTC_SUCCESS;
}

hiprtcResult hiprtcGetCodeSize(hiprtcProgram handle, size_t *out) {
  const program *p = program_of(handle);
  if (p == NULL || p->image == NULL) return HIPRTC_ERROR_INVALID_PROGRAM;
  *out = p->bytes;
  return HIPRTC_SUCCESS;
}

hiprtcResult hiprtcGetCode(hiprtcProgram handle, char *out) {
  const program *p = program_of(handle);
  if (p == NULL || p->image == NULL) return HIPRTC_ERROR_INVALID_PROGRAM;
  memcpy(out, p->image, p->bytes);
  return HIPRTC_SUCCESS;
}
