#include "clefkit/eval/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace clefkit {
namespace {

constexpr double kBarWidth = 160;
// Of the plot: its sides, and the room left of and below it for numbers.
constexpr double kSide = 260, kMargin = 34;
constexpr double kLargestRadius = 11;

double x_of(double confidence) { return kMargin + confidence * kSide; }
double y_of(double accuracy) { return 10 + (1 - accuracy) * kSide; }

}  // namespace

std::string html_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    }
  }
  return out;
}

std::string html_bar(double part, std::string_view style) {
  return fmt::format(
      R"(<svg class="bar" width="{0:.0f}" height="10" aria-hidden="true"><rect class="rail" width="{0:.0f}" height="10"/><rect class="{1}" width="{2:.1f}" height="10"/></svg>)",
      kBarWidth, style, std::clamp(part, 0.0, 1.0) * kBarWidth);
}

std::string html_calibration_plot(std::span<const ReliabilityBin> bins) {
  std::string out = fmt::format(
      R"(<svg class="plot" width="{:.0f}" height="{:.0f}" role="img" aria-label="Reliability diagram">)"
      "\n",
      kMargin + kSide + 14, kSide + 50);
  out += fmt::format(R"(<rect class="frame" x="{:.0f}" y="{:.0f}" width="{:.0f}" height="{:.0f}"/>)"
                     "\n",
                     x_of(0), y_of(1), kSide, kSide);
  for (const double tick : {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}) {
    out += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{:.1f}</text>)",
                       x_of(tick), y_of(0) + 14, tick);
    out += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">{:.1f}</text>)"
                       "\n",
                       x_of(0) - 5, y_of(tick) + 4, tick);
  }
  out += fmt::format(R"(<line class="ideal" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)"
                     "\n",
                     x_of(0), y_of(0), x_of(1), y_of(1));
  std::size_t most = 1;
  for (const ReliabilityBin& bin : bins) most = std::max(most, bin.count);
  std::string path;
  std::string circles;
  for (const ReliabilityBin& bin : bins) {
    if (bin.count == 0) continue;
    path += fmt::format("{:.1f},{:.1f} ", x_of(bin.confidence), y_of(bin.accuracy));
    const double part = static_cast<double>(bin.count) / static_cast<double>(most);
    circles += fmt::format(
        R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{} answers: probability {:.3f}, right {:.3f}</title></circle>)"
        "\n",
        x_of(bin.confidence), y_of(bin.accuracy), std::max(2.5, kLargestRadius * std::sqrt(part)),
        bin.count, bin.confidence, bin.accuracy);
  }
  out += fmt::format("<polyline points=\"{}\"/>\n{}", path, circles);
  out += fmt::format(
      R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">probability of the chosen answer</text>)",
      x_of(0.5), y_of(0) + 32);
  return out + "</svg>\n";
}

}  // namespace clefkit
