// SPDX-License-Identifier: Apache-2.0
#pragma once
// The PTX text of the kernel that copies elements at constant strides, compiled by the driver for
// its device. It uses PTX 4.3 and compute capability 3.0, so that every driver since CUDA 7.5
// accepts it.

namespace isthmus::cuda {

inline constexpr char k_strided_ptx[] = R"ptx(
// Copies the units that a StridedLaunch (strided.hpp) describes. A unit has 1, 2, 4, 8 or 16 bytes,
// and does not overlap the destination of another one. Each thread copies one unit at a time. The
// unit's index along each dimension is a digit of its number; the innermost dimension has the
// lowest digit.
.version 4.3
.target sm_30
.address_size 64

.visible .entry isthmus_copy_strided(.param .align 8 .b8 launch[320])
{
  .reg .pred is_done, is_last, is_this;
  .reg .u32 units, rank, unit, index, step, rest, left, count, digit, quotient;
  .reg .u32 word, word_1, word_2, word_3;
  .reg .u64 dimensions, dimension, write_at, read_at, stride, place;

  ld.param.u32 units, [launch+16];
  ld.param.u32 rank, [launch+20];
  ld.param.u32 unit, [launch+24];
  mov.u64 dimensions, launch;
  add.u64 dimensions, dimensions, 32;
  mov.u32 step, %ntid.x;
  mov.u32 index, %ctaid.x;
  mov.u32 digit, %tid.x;
  mad.lo.u32 index, index, step, digit;
  mov.u32 count, %nctaid.x;
  mul.lo.u32 step, step, count;

next_unit:
  setp.ge.u32 is_done, index, units;
  @is_done bra end;
  ld.param.u64 write_at, [launch];
  cvta.to.global.u64 write_at, write_at;
  ld.param.u64 read_at, [launch+8];
  cvta.to.global.u64 read_at, read_at;
  mov.u32 rest, index;
  mov.u32 left, rank;
  mov.u64 dimension, dimensions;

next_dimension:
  sub.u32 left, left, 1;
  setp.eq.u32 is_last, left, 0;
  mov.u32 digit, rest;
  @is_last bra step_along;
  ld.param.u32 count, [dimension+16];
  div.u32 quotient, rest, count;
  mul.lo.u32 digit, quotient, count;
  sub.u32 digit, rest, digit;
  mov.u32 rest, quotient;

step_along:
  cvt.u64.u32 place, digit;
  ld.param.u64 stride, [dimension];
  mad.lo.u64 write_at, place, stride, write_at;
  ld.param.u64 stride, [dimension+8];
  mad.lo.u64 read_at, place, stride, read_at;
  add.u64 dimension, dimension, 24;
  @!is_last bra next_dimension;

  setp.eq.u32 is_this, unit, 4;
  @is_this bra of_4;
  setp.eq.u32 is_this, unit, 8;
  @is_this bra of_8;
  setp.eq.u32 is_this, unit, 16;
  @is_this bra of_16;
  setp.eq.u32 is_this, unit, 2;
  @is_this bra of_2;
  ld.global.u8 word, [read_at];
  st.global.u8 [write_at], word;
  bra unit_end;

of_2:
  ld.global.u16 word, [read_at];
  st.global.u16 [write_at], word;
  bra unit_end;

of_4:
  ld.global.u32 word, [read_at];
  st.global.u32 [write_at], word;
  bra unit_end;

of_8:
  ld.global.v2.u32 {word, word_1}, [read_at];
  st.global.v2.u32 [write_at], {word, word_1};
  bra unit_end;

of_16:
  ld.global.v4.u32 {word, word_1, word_2, word_3}, [read_at];
  st.global.v4.u32 [write_at], {word, word_1, word_2, word_3};

unit_end:
  add.u32 index, index, step;
  bra next_unit;

end:
  ret;
}
)ptx";

}  // namespace isthmus::cuda
