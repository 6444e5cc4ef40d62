# SPDX-License-Identifier: Apache-2.0
# How C is compiled here. Every flag is one that both gcc 12 and clang 14 take, or is probed.
include(CheckCCompilerFlag)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS ON) # the cleanup attribute
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(pernode_flags INTERFACE)
target_include_directories(pernode_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(pernode_flags INTERFACE _GNU_SOURCE)
# No fused multiply-add and no fast-math: the estimator equals its reference to the last bit.
target_compile_options(pernode_flags INTERFACE -ffp-contract=off -fno-strict-aliasing
	-fno-delete-null-pointer-checks -fstack-protector-strong)
target_compile_options(pernode_flags INTERFACE -Wall -Wextra -Wformat=2 -Wconversion -Wshadow -Wundef
	-Wpointer-arith -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
	-Wimplicit-fallthrough -Wno-unused-parameter
	-Wno-format-truncation) # cutting to a bound is what snprintf is used for here
foreach(flag -Wlogical-op -Wtrampolines -ftrivial-auto-var-init=zero -fstack-clash-protection -fcf-protection=full)
	string(MAKE_C_IDENTIFIER "HAVE${flag}" have)
	check_c_compiler_flag(${flag} ${have})
	if(${have})
		target_compile_options(pernode_flags INTERFACE ${flag})
	endif()
endforeach()
if(PERNODE_WERROR)
	target_compile_options(pernode_flags INTERFACE -Werror)
endif()
if(PERNODE_SANITIZE)
	target_compile_options(pernode_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
		-fno-omit-frame-pointer)
	target_link_options(pernode_flags INTERFACE -fsanitize=address,undefined)
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
	target_compile_options(pernode_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
if(PERNODE_FUZZ)
	target_compile_options(pernode_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(PERNODE_COVERAGE)
	target_compile_options(pernode_flags INTERFACE --coverage)
	target_link_options(pernode_flags INTERFACE --coverage)
endif()
if(PERNODE_TINY)
	target_compile_definitions(pernode_flags INTERFACE PERNODE_TINY=1)
endif()
target_link_options(pernode_flags INTERFACE -Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,--as-needed)
