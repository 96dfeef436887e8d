/* OpenCL's codes: the text and the status of ours for each, and the sticky fault of a device. */
#include "opencl.h"

#define NAME(code) \
  case code: return #code;

const char *ocl_code_name(cl_int code) {
  switch (code) {
    NAME(CL_SUCCESS)
    NAME(CL_DEVICE_NOT_FOUND)
    NAME(CL_DEVICE_NOT_AVAILABLE)
    NAME(CL_COMPILER_NOT_AVAILABLE)
    NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    NAME(CL_OUT_OF_RESOURCES)
    NAME(CL_OUT_OF_HOST_MEMORY)
    NAME(CL_PROFILING_INFO_NOT_AVAILABLE)
    NAME(CL_MEM_COPY_OVERLAP)
    NAME(CL_BUILD_PROGRAM_FAILURE)
    NAME(CL_MAP_FAILURE)
    NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET)
    NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    NAME(CL_COMPILE_PROGRAM_FAILURE)
    NAME(CL_LINK_PROGRAM_FAILURE)
    NAME(CL_DEVICE_PARTITION_FAILED)
    NAME(CL_INVALID_VALUE)
    NAME(CL_INVALID_DEVICE_TYPE)
    NAME(CL_INVALID_PLATFORM)
    NAME(CL_INVALID_DEVICE)
    NAME(CL_INVALID_CONTEXT)
    NAME(CL_INVALID_QUEUE_PROPERTIES)
    NAME(CL_INVALID_COMMAND_QUEUE)
    NAME(CL_INVALID_HOST_PTR)
    NAME(CL_INVALID_MEM_OBJECT)
    NAME(CL_INVALID_BINARY)
    NAME(CL_INVALID_BUILD_OPTIONS)
    NAME(CL_INVALID_PROGRAM)
    NAME(CL_INVALID_PROGRAM_EXECUTABLE)
    NAME(CL_INVALID_KERNEL_NAME)
    NAME(CL_INVALID_KERNEL_DEFINITION)
    NAME(CL_INVALID_KERNEL)
    NAME(CL_INVALID_ARG_INDEX)
    NAME(CL_INVALID_ARG_VALUE)
    NAME(CL_INVALID_ARG_SIZE)
    NAME(CL_INVALID_KERNEL_ARGS)
    NAME(CL_INVALID_WORK_DIMENSION)
    NAME(CL_INVALID_WORK_GROUP_SIZE)
    NAME(CL_INVALID_WORK_ITEM_SIZE)
    NAME(CL_INVALID_GLOBAL_OFFSET)
    NAME(CL_INVALID_EVENT_WAIT_LIST)
    NAME(CL_INVALID_EVENT)
    NAME(CL_INVALID_OPERATION)
    NAME(CL_INVALID_BUFFER_SIZE)
    NAME(CL_INVALID_GLOBAL_WORK_SIZE)
    NAME(CL_INVALID_PROPERTY)
    NAME(CL_PLATFORM_NOT_FOUND_KHR)
  default: return "an unknown code";
  }
}

/* After these nothing on the device works any more; -9999 is what one vendor answers after a wild access. */
static bool is_fault(cl_int code) {
  return code == CL_DEVICE_NOT_AVAILABLE || code == CL_INVALID_CONTEXT || code == CL_INVALID_COMMAND_QUEUE ||
         code == -9999;
}

static heddle_status status_of(cl_int code) {
  switch (code) {
  case CL_MEM_OBJECT_ALLOCATION_FAILURE:
  case CL_OUT_OF_HOST_MEMORY: return HEDDLE_ENOMEM;
  case CL_INVALID_IMAGE_SIZE:
  case CL_INVALID_BUFFER_SIZE: return HEDDLE_ELIMIT;
  case CL_BUILD_PROGRAM_FAILURE:
  case CL_COMPILE_PROGRAM_FAILURE:
  case CL_LINK_PROGRAM_FAILURE:
  case CL_COMPILER_NOT_AVAILABLE:
  case CL_INVALID_BINARY: return HEDDLE_ECOMPILE;
  case CL_IMAGE_FORMAT_NOT_SUPPORTED: return HEDDLE_EUNSUPPORTED;
  case CL_INVALID_KERNEL_NAME: return HEDDLE_ENOTFOUND;
  default: return is_fault(code) ? HEDDLE_EDEVICE : HEDDLE_EFAILED;
  }
}

void ocl_fault(heddle_pdevice *dev, const heddle_error *fault) {
  pthread_mutex_lock(&dev->lock);
  const bool first = !atomic_load(&dev->faulted);
  if (first) {
    dev->fault = *fault;
    atomic_store(&dev->faulted, true);
  }
  pthread_mutex_unlock(&dev->lock);
  if (first) dev->host->device_fault(dev->host->ctx, dev->cookie, fault->api_code, fault->text);
}

heddle_status ocl_check(heddle_pdevice *dev, cl_int code, const char *what, heddle_error *err) {
  heddle_error own;
  if (code == CL_SUCCESS) return HEDDLE_OK;
  if (err == NULL) err = &own;
  const heddle_status s = status_of(code);
  if (dev == NULL) return p_fail(err, s, code, "opencl: %s: %s (%d)", what, ocl_code_name(code), code);
  p_fail(err, s, code, "opencl:%u: %s: %s (%d)", dev->index, what, ocl_code_name(code), code);
  if (s == HEDDLE_EDEVICE) ocl_fault(dev, err);
  return s;
}

heddle_status ocl_health(heddle_pdevice *dev, heddle_error *err) {
  if (!atomic_load_explicit(&dev->faulted, memory_order_acquire)) return HEDDLE_OK;
  if (err != NULL) *err = dev->fault; /* written before faulted, and never again */
  return HEDDLE_EDEVICE;
}
