#include "clefkit/server/model_names.h"

#include <gtest/gtest.h>

namespace clefkit::server {
namespace {

TEST(ModelNames, AcceptsWhatDecisionClientsSend) {
  for (const char* name : {"jev-latest", "jev-preview", "jev-1.13.0", "clef", "clef-flash",
                           "Clef-Flash", "  clef-flash\n", "@cf/cloudflare/clef-flash",
                           "@cf/cloudflare/clef", "cloudflare/clef-flash", "clef-flash:latest",
                           "~typesafe/jev-latest", "typesafe/jev-1.13", "JEV-LATEST"}) {
    EXPECT_TRUE(is_model_alias(name, "clef-nano")) << name;
  }
}

TEST(ModelNames, AcceptsTheModelsOwnName) {
  EXPECT_TRUE(is_model_alias("clef-nano", "clef-nano"));
  EXPECT_TRUE(is_model_alias("Clef-Nano:q6", "clef-nano"));
  EXPECT_TRUE(is_model_alias("lab/clef-nano", "clef-nano"));
  EXPECT_TRUE(is_model_alias("lab/tuned:v2", "lab/tuned:v2"));
}

TEST(ModelNames, RefusesOtherNames) {
  for (const char* name : {"", "  ", "/", ":latest", "jev-", "jev", "gpt-6-luna", "clef-flash-2",
                           "clef-flash/other", "my-clef"}) {
    EXPECT_FALSE(is_model_alias(name, "clef-nano")) << name;
  }
}

}  // namespace
}  // namespace clefkit::server
