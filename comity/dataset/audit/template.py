"""The European Commission's template for the public summary of training content, as far as a
dataset can fill it (Article 53(1)(d) of Regulation (EU) 2024/1689, template of July 2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SHARE = 10  # per cent of the domain names that the template asks for: the largest ones


def filled(audit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the sections of the template, with their fields.

    A field has `value`, or None where the maker of the model must fill it."""
    described, readings, months = audit["set"], audit["readings"], audit["months"]
    dated = sorted(month["month"] for month in months if month["month"])
    crawlers = readings["captured_by"] or [readings["agent"]]
    formats = [one["title"] for one in audit["formats"] if one["is_signal"]]
    sections: Sequence[tuple[str, str, Sequence[tuple[str, str | None]]]] = (
        (
            "1.1",
            "Provider identification",
            (("Provider name and contact details", None), ("Authorised representative", None)),
        ),
        (
            "1.2",
            "Model identification",
            (
                ("Versioned model name", None),
                ("Model dependencies", None),
                ("Date of placement of the model on the Union market", None),
            ),
        ),
        (
            "1.3",
            "Modalities, overall training data size and other characteristics",
            (
                ("Modalities", None),
                (
                    "Training data size",
                    f"{described['records']:,} records, {described['octets']:,} octets in this"
                    " dataset. The template asks for a range of tokens.",
                ),
                ("Types of content", None),
                ("Latest date of data acquisition", dated[-1] if dated else None),
                ("Linguistic characteristics of the training data", None),
            ),
        ),
        ("2.1", "Publicly available datasets", (("Large datasets, with links", None),)),
        (
            "2.2",
            "Private datasets obtained from third parties",
            (("Licensed datasets", None), ("Other private datasets", None)),
        ),
        (
            "2.3",
            "Data crawled and scraped from online sources",
            (
                ("Crawler names", ", ".join(crawlers) or None),
                ("Purposes of the crawlers", None),
                (
                    "Behaviour of the crawlers",
                    f"Each record was judged for the crawler {readings['agent']} by the policies"
                    " that its site publishes. The section “Which readings were taken” has the"
                    " details.",
                ),
                ("Period of data collection", f"{dated[0]} to {dated[-1]}" if dated else None),
                ("Types of content and online sources", None),
                (
                    f"The largest {SHARE} % of all domain names",
                    f"{described['origins']:,} origins in all. This page lists the largest. All of"
                    " them: comity dataset stats --by origin -o origins.csv"
                    f" {described['name']}",
                ),
            ),
        ),
        ("2.4", "User data", (("Data from users of the provider's services", None),)),
        ("2.5", "Synthetic data", (("Data made by other models", None),)),
        ("2.6", "Other sources of data", (("Other sources", None),)),
        (
            "3.1",
            "Respect of reservations of rights (text and data mining)",
            (
                ("Signatory of the Code of Practice", None),
                (
                    "Measures, opt-out protocols and solutions",
                    f"Statements that decided: {', '.join(formats) or 'none'}."
                    f" {audit['refused']['dropped']:,} records were dropped."
                    " “What was dropped, and why” has the reasons.",
                ),
            ),
        ),
        ("3.2", "Removal of illegal content", (("Measures", None),)),
        ("3.3", "Other information", (("Optional", None),)),
    )
    return [
        {
            "section": number,
            "title": title,
            "fields": [{"field": name, "value": value} for name, value in fields],
        }
        for number, title, fields in sections
    ]
