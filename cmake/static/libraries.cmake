# SPDX-License-Identifier: Apache-2.0
# The libraries of the one static binary: small ones of our own build where that pays (scripts/build-static-libs), the
# archives of the -dev packages for the rest.
set(PERNODE_STATIC_LIBS "" CACHE PATH "Folder that scripts/build-static-libs prints")
if(NOT EXISTS "${PERNODE_STATIC_LIBS}/lib/libcurl.a")
	message(FATAL_ERROR "PERNODE_STATIC_LIBS=${PERNODE_STATIC_LIBS} holds no lib/libcurl.a.\n"
		"Build the static binary with: scripts/build-release")
endif()

# pernode_archive(name FILE…): pernode::name is these archives, in link order. Ours come before the machine's.
function(pernode_archive name)
	set(files)
	foreach(file ${ARGN})
		find_library(archive_${file} NAMES ${file} HINTS ${PERNODE_STATIC_LIBS}/lib NO_CACHE)
		if(NOT archive_${file})
			message(FATAL_ERROR "${file} is not on this machine. Install everything at once with: scripts/setup")
		endif()
		list(APPEND files ${archive_${file}})
	endforeach()
	add_library(pernode::${name} INTERFACE IMPORTED GLOBAL)
	target_link_libraries(pernode::${name} INTERFACE ${files})
	target_include_directories(pernode::${name} SYSTEM INTERFACE ${PERNODE_STATIC_LIBS}/include)
endfunction()

pernode_archive(zlib libz.a)
pernode_archive(uv libuv_a.a)
pernode_archive(yajl libyajl_s.a)
pernode_archive(curl libcurl.a libssl.a libcrypto.a libcares.a libz.a)
pernode_archive(microhttpd libmicrohttpd.a)
pernode_archive(yaml libyaml.a)
pernode_archive(cgroup libcgroup.a)

# What --version prints.
set(ENV{PKG_CONFIG_PATH} ${PERNODE_STATIC_LIBS}/lib/pkgconfig)
foreach(module libuv yajl zlib libcurl openssl libcares libmicrohttpd yaml-0.1 libcgroup)
	execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --modversion ${module} OUTPUT_VARIABLE version
		OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
	set_property(GLOBAL APPEND PROPERTY PERNODE_LIBRARIES "${module} ${version}")
endforeach()

target_compile_options(pernode_flags INTERFACE -ffunction-sections -fdata-sections
	-ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=build)
# Relative relocations in their packed form: static-pie costs 0.1 MB instead of 0.5.
target_link_options(pernode_flags INTERFACE -Wl,--gc-sections -Wl,-z,pack-relative-relocs -Wl,--build-id=sha1
	-Wl,--strip-all)
