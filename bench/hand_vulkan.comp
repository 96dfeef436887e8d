#version 450
// bench/hand_vulkan.comp: c = a + b, one element an invocation.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint n = 1024;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < n) c[i] = a[i] + b[i];
}
