"""How headlines name central banks, regions and measures. Outcomes are told and read with these names."""

# By key: the name that our own headlines use, then others. Longer names are tried first.
BANKS: dict[str, tuple[str, ...]] = {
    "fed": (
        "Fed", "Federal Reserve", "US Federal Reserve", "U.S. Federal Reserve", "US Fed", "U.S. Fed", "FOMC",
        "Federal Open Market Committee", "U.S. central bank", "US central bank",
    ),
    "ecb": ("ECB", "European Central Bank"),
    "boe": ("Bank of England", "BoE", "Britain's central bank", "UK central bank"),
    "boj": ("Bank of Japan", "BoJ", "Japan's central bank"),
    "boc": ("Bank of Canada", "BoC", "Canada's central bank", "Canadian central bank"),
    "rba": ("RBA", "Reserve Bank of Australia", "Australia's central bank"),
    "rbnz": ("RBNZ", "Reserve Bank of New Zealand", "New Zealand's central bank"),
    "snb": ("SNB", "Swiss National Bank", "Swiss central bank"),
    "riksbank": ("Riksbank", "Swedish central bank", "Sweden's central bank"),
    "norges": ("Norges Bank", "Norway's central bank", "Norwegian central bank"),
    "pboc": ("PBOC", "People's Bank of China", "China's central bank"),
    "rbi": ("RBI", "Reserve Bank of India", "India's central bank"),
    "bok": ("Bank of Korea", "BOK", "South Korea's central bank"),
    "bcb": ("Brazil's central bank", "Brazil central bank", "Copom"),
    "banxico": ("Bank of Mexico", "Banxico", "Mexico's central bank"),
    "sarb": ("SARB", "South African Reserve Bank", "South Africa's central bank"),
    "cbrt": ("Turkish central bank", "Turkey's central bank", "CBRT"),
}  # fmt: skip

REGIONS: dict[str, tuple[str, ...]] = {
    "us": ("U.S.", "US", "USA", "United States", "American", "America's"),
    "euro": ("euro zone", "eurozone", "euro-zone", "euro area", "EU"),
    "uk": ("UK", "U.K.", "British", "Britain's", "Britain"),
    "jp": ("Japan", "Japan's", "Japanese"),
    "ca": ("Canada", "Canada's", "Canadian"),
    "cn": ("China", "China's", "Chinese"),
    "de": ("German", "Germany", "Germany's"),
    "fr": ("French", "France", "France's"),
    "au": ("Australia", "Australia's", "Australian"),
    "ch": ("Swiss", "Switzerland", "Switzerland's"),
    "in": ("India", "India's", "Indian"),
    "it": ("Italy", "Italy's", "Italian"),
    "es": ("Spain", "Spain's", "Spanish"),
    "kr": ("South Korea", "South Korea's", "South Korean", "Korea"),
    "br": ("Brazil", "Brazil's", "Brazilian"),
    "mx": ("Mexico", "Mexico's", "Mexican"),
    "se": ("Sweden", "Sweden's", "Swedish"),
    "no": ("Norway", "Norway's", "Norwegian"),
    "nz": ("New Zealand", "New Zealand's"),
    "za": ("South Africa", "South Africa's", "South African"),
    "tr": ("Turkey", "Turkey's", "Turkish"),
    "ru": ("Russia", "Russia's", "Russian"),
}

# Abroad that no calendar names, and parts of a country: a figure of theirs is not the country's.
ELSEWHERE = (
    "Greece", "Greek", "Portugal", "Portuguese", "Ireland", "Irish", "Poland", "Polish", "Hungary", "Hungarian",
    "Czech", "Romania", "Israel", "Israeli", "Egypt", "Taiwan", "Thai", "Thailand", "Indonesia", "Indonesian",
    "Malaysia", "Philippine", "Philippines", "Vietnam", "Singapore", "Hong Kong", "Chile", "Chilean", "Colombia",
    "Peru", "Argentina", "Argentine", "Venezuela", "Ukraine", "Pakistan", "Nigeria", "Kenya", "Saudi", "Dutch",
    "Netherlands", "Belgium", "Belgian", "Austria", "Austrian", "Denmark", "Danish", "Finland", "Finnish", "Asia",
    "Asian", "Europe", "European", "Africa", "African", "Latin America", "California", "Texas", "Ohio", "Florida",
    "Scotland", "Scottish", "Tokyo", "Ontario", "Quebec", "Bavaria", "Saxony", "OECD", "G7", "G20", "global", "world",
)  # fmt: skip


def bank_names(key: str) -> tuple[str, ...]:
    return BANKS.get(key, ())


def region_names(key: str) -> tuple[str, ...]:
    return REGIONS.get(key, ())
