// Country names of the Online Retail files and their ISO 3166-1 codes. What names no single country
// of the standard has no code: `Channel Islands` are two (Guernsey GG and Jersey JE), `European
// Community` and `Unspecified` are none. A name that is not in the table gives none either, never a
// guess.

const CODES: Readonly<Record<string, string>> = {
  Australia: 'AU',
  Austria: 'AT',
  Bahrain: 'BH',
  Belgium: 'BE',
  Bermuda: 'BM',
  Brazil: 'BR',
  Canada: 'CA',
  Cyprus: 'CY',
  'Czech Republic': 'CZ',
  Denmark: 'DK',
  EIRE: 'IE',
  Finland: 'FI',
  France: 'FR',
  Germany: 'DE',
  Greece: 'GR',
  'Hong Kong': 'HK',
  Iceland: 'IS',
  Ireland: 'IE',
  Israel: 'IL',
  Italy: 'IT',
  Japan: 'JP',
  Lebanon: 'LB',
  Lithuania: 'LT',
  Malta: 'MT',
  Netherlands: 'NL',
  Nigeria: 'NG',
  Norway: 'NO',
  Poland: 'PL',
  Portugal: 'PT',
  RSA: 'ZA',
  'Saudi Arabia': 'SA',
  Singapore: 'SG',
  Spain: 'ES',
  Sweden: 'SE',
  Switzerland: 'CH',
  Thailand: 'TH',
  USA: 'US',
  'United Arab Emirates': 'AE',
  'United Kingdom': 'GB',
}

const BY_NAME = new Map(Object.entries(CODES))

/** The ISO 3166-1 alpha-2 code of a country name, or null. */
export function countryCode(name: string): string | null {
  return BY_NAME.get(name) ?? BY_NAME.get(name.trim()) ?? null
}
